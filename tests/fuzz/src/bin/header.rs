//! Drives the target of the same name.
#![cfg_attr(fuzzing, no_main)]

handstamp_fuzz::program!(HEADER);
