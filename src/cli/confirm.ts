import { createInterface } from 'node:readline/promises'
import { ServoError } from '../lib/error.ts'

interface Terminal {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
}

/** Goes on only if the user at the terminal confirms; without a terminal the flag is the confirmation. */
export function refuseUnattended({ input, output }: Terminal, flag = '--yes'): void {
  if (input.isTTY && output.isTTY) return
  throw new ServoError('invalid', 'confirmation_needed', 'this needs a confirmation, and there is no terminal to ask for one', {
    hint: `Pass ${flag} when you are sure.`,
  })
}

/** Asks a question on the terminal. Anything but yes is no, including the end of the input. */
export async function askToConfirm(question: string, terminal: Terminal): Promise<boolean> {
  const asking = createInterface(terminal)
  const left = new Promise<string>((resolve) => asking.once('close', () => resolve('')))
  asking.once('SIGINT', () => {
    process.exitCode = 130
    asking.close()
  })
  try {
    const answer = await Promise.race([asking.question(`${question} [y/N] `), left])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    asking.close()
  }
}
