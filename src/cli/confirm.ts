import { createInterface } from 'node:readline/promises'
import { ServoError } from '../lib/error.ts'

export interface Terminal {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
}

/** Goes on only if the user at the terminal confirms; without a terminal the flag is the confirmation. */
export function refuseUnattended({ input, output }: Terminal, flag = '--yes'): void {
  if (input.isTTY && output.isTTY) return
  throw new ServoError('invalid', 'confirmation_needed', 'this needs confirmation, and there is no terminal to ask in', {
    hint: `Add ${flag} to confirm.`,
  })
}

/** Asks on the terminal, one question after the other. An answer is undefined when the user has left. */
export async function asking<T>(
  terminal: Terminal,
  work: (ask: (question: string) => Promise<string | undefined>) => Promise<T>,
): Promise<T> {
  const lines = createInterface(terminal)
  const left = new Promise<undefined>((resolve) => lines.once('close', () => resolve(undefined)))
  lines.once('SIGINT', () => {
    process.exitCode = 130
    lines.close()
  })
  try {
    return await work(async (question) => (await Promise.race([lines.question(question), left]))?.trim())
  } finally {
    lines.close()
  }
}

/** Asks a question on the terminal. Anything but yes is no, including the end of the input. */
export async function askToConfirm(question: string, terminal: Terminal): Promise<boolean> {
  return await asking(terminal, async (ask) => /^y(es)?$/i.test((await ask(`${question} [y/N] `)) ?? ''))
}
