//! Days as dates.

/// The date of a day, in UTC: year, month and day of the month, of the day that is so many days after
/// 1 January 1970.
pub fn date_of_day(days: u64) -> (u64, u64, u64) {
    // Days are counted in eras of 400 years that begin on 1 March, so that the leap day is last.
    let shifted = days.saturating_add(719_468);
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days_and_ends_of_years() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (364, (1970, 12, 31)),
            (365, (1971, 1, 1)),
            (11_015, (2000, 2, 28)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date_of_day(days), date, "day {days}");
        }
    }

    #[test]
    fn the_last_day_there_is_has_a_date() {
        let (_, month, day) = date_of_day(u64::MAX);
        assert!((1..=12).contains(&month) && (1..=31).contains(&day));
    }
}
