// Runs any number of commands in one process: node session-process.mjs <main.js of the built package>, started by session.ts. Each message
// has the folder and the arguments of a command; the answer has what a process of its own would have printed, and its exit code.

const [, , main] = process.argv
const written = { stdout: '', stderr: '' }
for (const name of ['stdout', 'stderr'])
  process[name].write = (text) => {
    written[name] += text
    return true
  }
const { main: run } = await import(main)

process.on('message', async ({ id, cwd, args }) => {
  written.stdout = written.stderr = ''
  process.chdir(cwd)
  process.exitCode = 0
  await run(args)
  const code = process.exitCode
  process.exitCode = 0
  process.send({ id, code, ...written })
})
process.on('disconnect', () => process.exit())
process.send('ready')
