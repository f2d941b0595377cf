/**
 * Numbers that a process counts, and the text in which Prometheus reads them (text format 0.0.4). To count is to add to a number; text is
 * made, and gauges are read, only when somebody asks.
 */

/** A number that only grows. */
export class Counter {
  value = 0

  add(by = 1): void {
    this.value += by
  }
}

/** Counters of one name, one for each combination of label values. The caller keeps these few. */
export class CounterFamily {
  readonly #labels: readonly string[]
  readonly #counters = new Map<string, { readonly values: readonly string[]; readonly counter: Counter }>()

  constructor(labels: readonly string[]) {
    this.#labels = labels
  }

  /** The counter with these values of the labels, in their order. */
  of(...values: readonly string[]): Counter {
    const key = values.join('\0')
    let known = this.#counters.get(key)
    if (known === undefined) {
      known = { values, counter: new Counter() }
      this.#counters.set(key, known)
    }
    return known.counter
  }

  *samples(): Iterable<Sample> {
    for (const { values, counter } of this.#counters.values())
      yield { labels: labelsOf(this.#labels, values), value: counter.value }
  }
}

/** How many observations were at most so large, for each of a few bounds. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** By the first bound that an observation does not exceed; the last is for those beyond all bounds. */
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let place = 0
    while (place < this.#bounds.length && value > (this.#bounds[place] ?? 0)) place += 1
    this.#counts[place] = (this.#counts[place] ?? 0) + 1
    this.#sum += value
  }

  *samples(): Iterable<Sample> {
    let count = 0
    for (const [place, own] of this.#counts.entries()) {
      count += own
      const bound = this.#bounds[place]
      yield { suffix: '_bucket', labels: labelsOf(['le'], [bound === undefined ? '+Inf' : String(bound)]), value: count }
    }
    yield { suffix: '_sum', value: this.#sum }
    yield { suffix: '_count', value: count }
  }
}

/** One line of a metric. */
export interface Sample {
  readonly suffix?: string
  /** As text, without the braces. */
  readonly labels?: string
  readonly value: number
}

export type MetricType = 'counter' | 'gauge' | 'histogram'

interface Metric {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly samples: () => Iterable<Sample>
}

/** All metrics of a process, each declared once with its name and a sentence. */
export class MetricRegistry {
  readonly #metrics: Metric[] = []

  counter(name: string, help: string): Counter {
    const counter = new Counter()
    this.#metrics.push({ name, type: 'counter', help, samples: () => [counter] })
    return counter
  }

  /** Combinations in `known` are there from the start, with 0: a rate needs two numbers. */
  counters(name: string, help: string, labels: readonly string[], known: readonly (readonly string[])[] = []): CounterFamily {
    const family = new CounterFamily(labels)
    for (const values of known) family.of(...values)
    this.#metrics.push({ name, type: 'counter', help, samples: () => family.samples() })
    return family
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(bounds)
    this.#metrics.push({ name, type: 'histogram', help, samples: () => histogram.samples() })
    return histogram
  }

  /** A number that is read when somebody asks; undefined while nobody knows it. */
  reading(type: 'counter' | 'gauge', name: string, help: string, read: () => number | undefined): void {
    const samples = (): Sample[] => {
      const value = read()
      return value === undefined ? [] : [{ value }]
    }
    this.#metrics.push({ name, type, help, samples })
  }

  /** The same for several numbers, by the value of one label. */
  readings(name: string, help: string, label: string, read: () => Iterable<readonly [string, number]>): void {
    const samples = (): Sample[] =>
      [...read()].map(([value, number]) => ({ labels: labelsOf([label], [value]), value: number }))
    this.#metrics.push({ name, type: 'gauge', help, samples })
  }

  /** Everything, as Prometheus reads it. */
  text(): string {
    let text = ''
    for (const { name, type, help, samples } of this.#metrics) {
      text += `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`
      for (const { suffix = '', labels, value } of samples())
        text += `${name}${suffix}${labels === undefined ? '' : `{${labels}}`} ${value}\n`
    }
    return text
  }
}

const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

const labelsOf = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, i) => `${name}="${(values[i] ?? '').replace(/[\\"\n]/g, (each) => ESCAPED[each] ?? each)}"`).join(',')
