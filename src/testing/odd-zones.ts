/** Zones whose clocks do something that code about clocks tends to get wrong, with the days on which they do. */
export const oddZones: readonly { readonly zone: string; readonly days: readonly string[] }[] = [
  { zone: 'UTC', days: ['2024-02-29', '2100-02-28'] },
  { zone: 'America/New_York', days: ['2024-03-10', '2024-11-03', '2099-03-08'] },
  { zone: 'Europe/Berlin', days: ['2024-03-31', '2024-10-27', '1980-04-06'] },
  // Half an hour ahead of UTC, and never changed.
  { zone: 'Asia/Kolkata', days: ['2024-01-01'] },
  // Clocks are put by half an hour.
  { zone: 'Australia/Lord_Howe', days: ['2024-10-06', '2024-04-07'] },
  // 30 December 2011 did not happen.
  { zone: 'Pacific/Apia', days: ['2011-12-29', '2011-12-30', '2011-12-31', '2011-04-02', '2011-09-24'] },
  // Clocks are put back for Ramadan.
  { zone: 'Africa/Casablanca', days: ['2024-03-10', '2024-04-14', '2030-01-06', '2031-12-14'] },
  // Midnight was skipped in spring and came twice in autumn.
  { zone: 'America/Sao_Paulo', days: ['2018-11-04', '2019-02-17', '2019-02-16'] },
  // Clocks are put by two hours.
  { zone: 'Antarctica/Troll', days: ['2024-03-31', '2024-10-27'] },
  // The last hour of Saturday is skipped.
  { zone: 'America/Nuuk', days: ['2024-03-30', '2024-03-31', '2024-10-26', '2024-10-27'] },
  // Midnight is skipped.
  { zone: 'America/Santiago', days: ['2024-09-08', '2024-04-07'] },
  { zone: 'Africa/Cairo', days: ['2024-04-26', '2024-11-01'] },
  { zone: 'Asia/Beirut', days: ['2024-03-31', '2024-10-27'] },
  { zone: 'Atlantic/Azores', days: ['2024-03-31', '2024-10-27'] },
  // One minute past midnight.
  { zone: 'America/St_Johns', days: ['2010-03-14', '2010-11-07', '1988-04-03'] },
  // A summer of a week, by today's forecast.
  { zone: 'Asia/Gaza', days: ['2040-10-20', '2040-10-27', '2024-04-20'] },
  { zone: 'Asia/Kathmandu', days: ['1986-01-01'] },
  // Seconds.
  { zone: 'Africa/Monrovia', days: ['1972-01-07'] },
  // The day of New Year's Eve 1994 was skipped.
  { zone: 'Pacific/Kiritimati', days: ['1994-12-31', '1995-01-01'] },
  { zone: 'Asia/Dhaka', days: ['2009-06-19', '2009-12-31'] },
]
