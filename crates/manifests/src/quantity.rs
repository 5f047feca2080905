//! Kubernetes quantities by value, so that `6G` and `6000M` are one. Never a
//! floating point number.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Digits after the point that are kept: the smallest suffix is n.
const NANO: i128 = 1_000_000_000;

/// The value in units of 10⁻⁹, rounded towards zero; None when the text is no
/// quantity or is out of range.
pub fn nano(quantity: &Quantity) -> Option<i128> {
    let text = quantity.0.trim();
    let number = text
        .find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(number)?;
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let magnitude = scale(digits, factor(suffix)?)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// Whether two quantities have the same value; two that cannot be read are the
/// same only letter by letter.
pub fn same(a: &Quantity, b: &Quantity) -> bool {
    match (nano(a), nano(b)) {
        (Some(a), Some(b)) => a == b,
        (Some(_) | None, _) => a == b,
    }
}

/// A factor as multiplier and divisor.
#[derive(Clone, Copy)]
struct Factor {
    by: i128,
    per: i128,
}

fn factor(suffix: &str) -> Option<Factor> {
    let whole = |by| Some(Factor { by, per: 1 });
    let part = |per| Some(Factor { by: 1, per });
    match suffix {
        "n" => part(NANO),
        "u" => part(1_000_000),
        "m" => part(1_000),
        "" => whole(1),
        "k" => whole(1_000),
        "M" => whole(1_000_000),
        "G" => whole(NANO),
        "T" => whole(NANO * 1_000),
        "P" => whole(NANO * 1_000_000),
        "E" => whole(NANO * NANO),
        "Ki" => whole(1 << 10),
        "Mi" => whole(1 << 20),
        "Gi" => whole(1 << 30),
        "Ti" => whole(1 << 40),
        "Pi" => whole(1 << 50),
        "Ei" => whole(1 << 60),
        _ => exponent(suffix.strip_prefix(['e', 'E'])?),
    }
}

fn exponent(text: &str) -> Option<Factor> {
    let exponent: i32 = text.parse().ok()?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 {
        Factor { by: 1, per: power }
    } else {
        Factor { by: power, per: 1 }
    })
}

fn scale(digits: &str, factor: Factor) -> Option<i128> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut sum: i128 = 0;
    for digit in whole.bytes().chain(part.bytes()) {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        sum = sum.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    let decimals = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    sum.checked_mul(NANO)?
        .checked_mul(factor.by)?
        .checked_div(decimals.checked_mul(factor.per)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Option<i128> {
        nano(&Quantity(text.to_owned()))
    }

    #[test]
    fn quantities_are_read_by_value() {
        for (text, units) in [
            ("0", 0),
            ("1", 1),
            ("+1", 1),
            ("-2", -2),
            ("1k", 1_000),
            ("1Ki", 1_024),
            ("1.5Gi", 1_610_612_736),
            (".5k", 500),
            ("5.", 5),
            ("6G", 6_000_000_000),
            ("6000M", 6_000_000_000),
            ("6e9", 6_000_000_000),
            ("6E3", 6_000),
            ("2E", 2_000_000_000_000_000_000),
            ("7Ei", 7 << 60),
        ] {
            assert_eq!(value(text), Some(units * NANO), "{text}");
        }
        assert_eq!(value("100m"), Some(NANO / 10));
        assert_eq!(value("1e-1"), Some(NANO / 10));
        assert_eq!(value("1n"), Some(1));
    }

    #[test]
    fn other_texts_are_no_quantities() {
        for text in [
            "", "-", ".", "1GB", "1 G", "G", "1.2.3", "1e", "1e99", "0x1", "١", "--1",
        ] {
            assert_eq!(value(text), None, "{text:?}");
        }
    }

    #[test]
    fn equal_values_are_the_same_however_written() {
        let same_texts = |a: &str, b: &str| same(&Quantity(a.into()), &Quantity(b.into()));
        assert!(same_texts("6G", "6000M"));
        assert!(same_texts("0.5", "500m"));
        assert!(same_texts("odd", "odd"));
        assert!(!same_texts("6G", "6Gi"));
        assert!(!same_texts("odd", "0"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+.0-9eEKMGTPinumk ]{0,60}|\\PC*") {
            let _ = value(&text);
        }
    }
}
