use std::any::Any;
use std::fmt::Debug;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgHasArrayType};
use sqlx::{Arguments as _, Encode, Postgres, Type};

/// The arguments of a statement in [`Effects`](super::Effects): a tuple of values that sqlx can send alone and as
/// elements of an array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a recorded statement",
    label = "expected a tuple of owned values, one for each of `$1`, `$2`, …",
    note = "one value is a tuple, too: `(id,)`; none is `()`. Each is a type that sqlx can send to PostgreSQL \
            alone and in an array (`Encode`, `Type`, `PgHasArrayType`), and `Debug`"
)]
pub trait EffectArguments: Debug + Send + Sync + 'static {
    /// How many there are.
    #[doc(hidden)]
    const COUNT: usize;

    /// Adds them, each as itself.
    #[doc(hidden)]
    fn bind(&self, to: &mut PgArguments) -> Result<(), BoxDynError>;

    /// Adds one array for each, with an element for each row; NULL where a row is of another statement.
    #[doc(hidden)]
    fn bind_columns(rows: &[Option<&Self>], to: &mut PgArguments) -> Result<(), BoxDynError>;
}

/// Arguments behind their type.
pub(super) trait Recorded: Any + Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn count(&self) -> usize;

    fn bind(&self, to: &mut PgArguments) -> Result<(), BoxDynError>;

    /// As [`EffectArguments::bind_columns`]; all rows are of the type of this one.
    fn bind_columns(&self, rows: &[Option<&dyn Recorded>], to: &mut PgArguments) -> Result<(), BoxDynError>;
}

impl<A: EffectArguments> Recorded for A {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn count(&self) -> usize {
        A::COUNT
    }

    fn bind(&self, to: &mut PgArguments) -> Result<(), BoxDynError> {
        EffectArguments::bind(self, to)
    }

    fn bind_columns(&self, rows: &[Option<&dyn Recorded>], to: &mut PgArguments) -> Result<(), BoxDynError> {
        let rows: Vec<Option<&A>> =
            rows.iter().map(|row| row.and_then(|row| row.as_any().downcast_ref())).collect();
        A::bind_columns(&rows, to)
    }
}

macro_rules! tuple {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name),*> EffectArguments for ($($name,)*)
        where
            $($name: for<'q> Encode<'q, Postgres> + Type<Postgres> + PgHasArrayType + Debug + Send + Sync + 'static,)*
        {
            const COUNT: usize = $count;

            #[allow(unused_variables)]
            fn bind(&self, to: &mut PgArguments) -> Result<(), BoxDynError> {
                $(to.add(&self.$index)?;)*
                Ok(())
            }

            #[allow(unused_variables)]
            fn bind_columns(rows: &[Option<&Self>], to: &mut PgArguments) -> Result<(), BoxDynError> {
                $(to.add(rows.iter().map(|row| row.map(|row| &row.$index)).collect::<Vec<_>>())?;)*
                Ok(())
            }
        }
    };
}

tuple!(0:);
tuple!(1: A 0);
tuple!(2: A 0, B 1);
tuple!(3: A 0, B 1, C 2);
tuple!(4: A 0, B 1, C 2, D 3);
tuple!(5: A 0, B 1, C 2, D 3, E 4);
tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
