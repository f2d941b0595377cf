import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { applyEnvFiles, envFileProblems } from './env-files.ts'

function folderWith(files: Readonly<Record<string, string>>): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-env-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true }))
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(dir, name), text)
  return dir
}

test('what is set stays, then .env.local counts, then .env', () => {
  const dir = folderWith({
    '.env': 'SET=env\nBOTH=env\nONLY="a # b"\nEMPTY=env\n# comment\nexport EXPORTED=1\n',
    '.env.local': '\uFEFFBOTH=local\nSET=local\n',
  })
  const environment = { SET: 'shell', EMPTY: '' }
  applyEnvFiles(dir, environment)
  expect(environment).toEqual({ SET: 'shell', EMPTY: '', BOTH: 'local', ONLY: 'a # b', EXPORTED: '1' })
})

test('a file that was edited counts anew: what it lost is gone, and what code has changed since stays', () => {
  const dir = folderWith({ '.env': 'KEPT=1\nLOST=1\nCHANGED=1\n' })
  const environment: Record<string, string> = {}
  applyEnvFiles(dir, environment)
  environment['CHANGED'] = 'by code'
  fs.writeFileSync(path.join(dir, '.env'), 'KEPT=2\nCHANGED=2\n')
  applyEnvFiles(dir, environment)
  expect(environment).toEqual({ KEPT: '2', CHANGED: 'by code' })
})

test('a project needs no file, and a folder of that name is none', () => {
  const dir = folderWith({})
  fs.mkdirSync(path.join(dir, '.env'))
  const environment = {}
  applyEnvFiles(dir, environment)
  expect(environment).toEqual({})
})

test('a file that cannot be read is named', () => {
  const dir = folderWith({})
  fs.symlinkSync('.env', path.join(dir, '.env'))
  expect(() => applyEnvFiles(dir, {})).toThrow(`${path.join(dir, '.env')} cannot be read`)
})

test('lines that assign nothing are named, without what they hold', () => {
  const good = '\uFEFF# comment\n\nA=1\nexport B = "two # words"\r\nC="line one\nline two"\nD=it\'s\nE=\nF.G-h=1\n'
  expect(envFileProblems(folderWith({ '.env': good }))).toEqual([])
  expect(envFileProblems(folderWith({}))).toEqual([])
  const bad = `${good}canary-51c0\n=canary-51c0\nTOKEN: canary-51c0\nSECRET="canary-51c0\n`
  const problems = envFileProblems(folderWith({ '.env.local': bad }))
  expect(problems.map(({ file, line, message }) => `${file}:${line} ${message}`)).toEqual([
    '.env.local:10 not NAME=value',
    '.env.local:11 not NAME=value',
    '.env.local:12 not NAME=value',
    '.env.local:13 the quote of SECRET is never closed',
  ])
  const behind = envFileProblems(folderWith({ '.env': 'A="x" # why\nTOKEN="abc\\"canary-51c0"\nL="one\ntwo" canary-51c0\n' }))
  expect(behind.map(({ line, message }) => `${line} ${message}`)).toEqual([
    '2 the text after the closing quote of TOKEN is ignored',
    '4 the text after the closing quote of L is ignored',
  ])
  expect(JSON.stringify([problems, behind])).not.toContain('canary')
})
