import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type Machine, machine } from './machine.ts'
import { mean, median, rounded } from './stats.ts'
import { formatTable } from './table.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Fewer rounds and less history: to find out whether something broke, not by how much. */
export const quick = process.argv.includes('--quick')

/** The size of what is run as a share of the full size, for benchmarks that take minutes: SERVO_BENCH_SCALE=0.1. */
const scale = Number(process.env['SERVO_BENCH_SCALE'] ?? (quick ? 0.02 : 1))
export const scaled = (count: number): number => Math.max(1, Math.round(count * scale))

/** As many as tell a median from noise; more would only make the committed files large. */
const KEPT_SAMPLES = 200

interface Measured {
  readonly unit: string
  readonly median: number
  readonly mean: number
  readonly count: number
  readonly samples: readonly number[]
}

/** Prints tables as they come, and leaves the figures behind them in bench/results/. */
export class Report {
  readonly #name: string
  readonly #machine: Machine
  readonly #tables: { title: string; rows: readonly (readonly string[])[] }[] = []
  readonly #samples: Record<string, Measured> = {}
  readonly #notes: string[] = []

  constructor(name: string, about: string) {
    this.#name = name
    this.#machine = machine()
    const { cpu, cores, node, filesystem, load, commit } = this.#machine
    console.log(
      `\n${name}: ${about}\n${cpu}, ${cores} cores, Node ${node}, ${filesystem}, load ${load}, commit ${commit}${quick ? ', quick' : ''}${scale === 1 ? '' : `, scale ${scale}`}`,
    )
    if (filesystem === 'tmpfs')
      this.note('The scratch folder is memory, so syncing costs nothing here: set SERVO_BENCH_DIR to a folder on a disk.')
  }

  /** A table whose first row is the heading. */
  table(title: string, rows: readonly (readonly string[])[]): void {
    this.#tables.push({ title, rows })
    console.log(`\n${title}\n${formatTable(rows)}`)
  }

  note(text: string): void {
    this.#notes.push(text)
    console.log(text)
  }

  samples(name: string, unit: string, samples: readonly number[]): void {
    const kept =
      samples.length <= KEPT_SAMPLES
        ? samples
        : Array.from({ length: KEPT_SAMPLES }, (_, i) => samples[Math.floor((i * samples.length) / KEPT_SAMPLES)] as number)
    this.#samples[name] = {
      unit,
      median: rounded(median(samples)),
      mean: rounded(mean(samples)),
      count: samples.length,
      samples: kept.map(rounded),
    }
  }

  /** Writes what was measured. Quick or small figures are for the eye only: they would replace good ones. */
  finish(): void {
    if (quick || scale !== 1) return
    const folder = path.join(root, 'bench/results')
    mkdirSync(folder, { recursive: true })
    const file = path.join(folder, `${this.#name}.json`)
    writeFileSync(
      file,
      `${JSON.stringify({ name: this.#name, machine: this.#machine, notes: this.#notes, tables: this.#tables, samples: this.#samples }, null, 2)}\n`,
    )
    // Committed like everything else, so laid out like everything else: a sample a line would be a thousand lines.
    spawnSync(path.join(root, 'node_modules/.bin/biome'), ['format', '--write', file], { stdio: 'ignore' })
    console.log(`\n${path.relative(root, file)} written`)
  }
}
