import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'

const secretsFile = z.object({
  /** Makes run ids. Never changes for a workspace, or a repeated request would be a new run. */
  run_ids: z.object({ id: z.string().min(1), value: z.string().min(16) }),
  /** Lets programs of this machine speak to the server. */
  api_token: z.string().min(16),
  /** Signs the tokens of attempts. */
  task_tokens: z.object({ id: z.string().min(1), value: z.string().min(16) }),
})
export type Secrets = z.infer<typeof secretsFile>

/** The secrets of a workspace on this machine: made on first use, readable by their owner alone. */
export async function localSecrets(file: string): Promise<Secrets> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) {
    const made: Secrets = {
      run_ids: { id: 'local-1', value: randomBytes(32).toString('base64url') },
      api_token: randomBytes(32).toString('base64url'),
      task_tokens: { id: 'local-1', value: randomBytes(32).toString('base64url') },
    }
    await mkdir(dirname(file), { recursive: true })
    // Whoever is first has made them: the other reads what is there.
    await writeFile(file, `${JSON.stringify(made, null, 2)}\n`, { mode: 0o600, flag: 'wx' }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      },
    )
    return await localSecrets(file)
  }
  const parsed = secretsFile.safeParse(parseJson(text))
  if (!parsed.success) {
    throw new ServoError('corrupt', 'bad_secrets', `${file} does not hold the secrets of a workspace`, {
      hint: 'Restore it. Without it run keys that were used before would make new runs.',
    })
  }
  return parsed.data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
