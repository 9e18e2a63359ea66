use super::KeyError;
use crate::message::Excerpt;

/// Appends a JSON number in the notation of RFC 8785, which is ECMAScript's (`Number::toString`).
///
/// The RFC takes the number for a double and writes the shortest digits that lead back to it, so that
/// neighbours beyond 2^53 become one. Here the digits are those of the number's exact decimal value: the same
/// for every number that a double gives back, and never the same for two numbers. No floating point is
/// involved, so no library's way to print it can change a hash.
pub(super) fn write(literal: &str, out: &mut String) -> Result<(), KeyError> {
    let (sign, magnitude) = literal.strip_prefix('-').map_or(("", literal), |magnitude| ("-", magnitude));
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let written = [whole, fraction].concat();
    let significant = written.trim_start_matches('0');
    let zeros = written.len() - significant.len();
    let digits = significant.trim_end_matches('0');
    if digits.is_empty() {
        out.push('0');
        return Ok(());
    }
    // The value is 0.DIGITS × 10^point.
    let point = exponent
        .parse::<i64>()
        .ok()
        .and_then(|exponent| {
            exponent.checked_add_unsigned(whole.len() as u64)?.checked_sub_unsigned(zeros as u64)
        })
        .ok_or_else(|| {
            let literal = Excerpt::text(literal.as_bytes());
            KeyError::new(format!("the exponent of the number {literal} is too long to compare"))
        })?;
    out.push_str(sign);
    lay_out(digits, point, out);
    Ok(())
}

fn lay_out(digits: &str, point: i64, out: &mut String) {
    match usize::try_from(point) {
        Ok(whole @ 1..=21) if digits.len() <= whole => {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', whole - digits.len()));
        }
        Ok(whole @ 1..=21) => {
            let (whole, fraction) = digits.split_at(whole);
            out.extend([whole, ".", fraction]);
        }
        _ if (-5..=0).contains(&point) => {
            out.push_str("0.");
            out.extend((point..0).map(|_| '0'));
            out.push_str(digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let separator = if rest.is_empty() { "" } else { "." };
            let exponent = format!("{:+}", i128::from(point) - 1);
            out.extend([first, separator, rest, "e", &exponent]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(literal: &str) -> String {
        let mut out = String::new();
        write(literal, &mut out).unwrap();
        out
    }

    /// RFC 8785, appendix B: the bits of a double and what they are written as.
    const APPENDIX_B: [(u64, &str); 24] = [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];

    #[test]
    fn every_number_that_a_double_gives_back_is_written_as_in_rfc_8785() {
        for (bits, expected) in APPENDIX_B {
            assert_eq!(canonical(expected), expected);
            assert_eq!(expected.parse::<f64>(), Ok(f64::from_bits(bits)));
        }
    }

    #[test]
    fn c10_spellings_of_one_number_are_one_number() {
        for (spellings, expected) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.00"][..], "1"),
            (&["-0", "0", "0.0", "-0e9", "0e99999999999999999999"], "0"),
            (&["1e21", "1000000000000000000000", "1.0E+21"], "1e+21"),
            (&["117.63331139400017", "11763331139400017e-14"], "117.63331139400017"),
        ] {
            for spelling in spellings {
                assert_eq!(canonical(spelling), expected, "{spelling}");
            }
        }
    }

    #[test]
    fn c10_numbers_that_one_double_stands_for_are_told_apart() {
        for [a, b] in [
            ["9007199254740992", "9007199254740993"],
            ["18446744073709551616", "18446744073709551617"],
            ["295147905179352825856", "295147905179352830000"],
            ["117.63331139400017", "117.63331139400016"],
            ["0.1", "0.1000000000000000055511151231257827"],
            ["1e400", "1e401"],
        ] {
            assert_ne!(canonical(a), canonical(b));
        }
    }

    #[test]
    fn a_number_beyond_doubles_keeps_all_of_its_digits() {
        assert_eq!(canonical("1e400"), "1e+400");
        assert_eq!(canonical("12345678901234567890123.5"), "1.23456789012345678901235e+22");
    }

    #[test]
    fn an_exponent_that_cannot_be_counted_is_refused() {
        let reason = write("0.5e99999999999999999999", &mut String::new()).unwrap_err().to_string();
        assert_eq!(reason, "the exponent of the number `0.5e99999999999999999999` is too long to compare");
    }

    proptest! {
        #[test]
        fn doubles_are_written_so_that_they_come_back(bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite());
            prop_assert_eq!(canonical(&format!("{double:e}")).parse::<f64>(), Ok(double));
        }

        #[test]
        fn what_is_written_stays_as_it_is(literal in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?") {
            let once = canonical(&literal);
            prop_assert_eq!(canonical(&once), once);
        }
    }
}
