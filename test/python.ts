import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const tools = path.resolve(import.meta.dirname, '../.tools')

/** A Python that has dagster-pipes and duckdb, or undefined with the reason on the screen. */
export const pythonWithPackages = (untested: string): string | undefined =>
  installed('python', ['dagster-pipes', 'duckdb'], untested)

/** One that sends all kinds of requests to an API, as its OpenAPI document has them and as it has not. */
export const pythonWithSchemathesis = (untested: string): string | undefined =>
  installed('schemathesis-4.32.5', ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'], untested)

/** One that has the messages of OpenTelemetry. */
export const pythonWithOtlp = (untested: string): string | undefined =>
  installed('python-otlp', ['opentelemetry-proto'], untested)

/** Installs it once, where the tools of the repository are. */
function installed(name: string, packages: readonly string[], untested: string): string | undefined {
  const folder = path.join(tools, name)
  const python = path.join(folder, 'bin', 'python')
  if (fs.existsSync(python)) return python
  const making = `${folder}-${process.pid}`
  try {
    execFileSync('python3', ['-m', 'venv', making], { stdio: 'pipe' })
    const own = path.join(making, 'bin', 'python')
    execFileSync(own, ['-m', 'pip', 'install', '--quiet', ...packages], { stdio: 'pipe' })
    moveThere(making, folder)
    return python
  } catch (error) {
    if (process.env['SERVO_REQUIRE_ALL'] === '1') throw error
    console.warn(`${untested}: ${(error as Error).message.split('\n')[0]}`)
    return undefined
  } finally {
    fs.rmSync(making, { recursive: true, force: true })
  }
}

/** Another test file may have been faster. */
function moveThere(making: string, folder: string): void {
  try {
    fs.renameSync(making, folder)
  } catch (error) {
    if (!fs.existsSync(folder)) throw error
  }
}
