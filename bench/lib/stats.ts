const ascending = (samples: readonly number[]): number[] => [...samples].sort((a, b) => a - b)

/** The value below which a share of the samples lies: 0.5 is the median. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = ascending(samples)
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5)

export const sum = (samples: readonly number[]): number => samples.reduce((total, sample) => total + sample, 0)

export const mean = (samples: readonly number[]): number => sum(samples) / samples.length

/** Enough to see a difference of a thousandth, and result files that people can read. */
export const rounded = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(4)) : 0)
