import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ServoError } from '../../lib/error.ts'
import { query, type TableSource } from './read-only-query.ts'

let folder = ''
let mine = ''
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-query-'))
  mine = path.join(folder, 'mine.parquet')
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  await connection.run(`COPY (SELECT 42 AS answer) TO '${mine}'`)
  await connection.run(`COPY (SELECT 'secret' AS answer) TO '${path.join(folder, 'other.parquet')}'`)
  connection.closeSync()
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** One table, and a record of which tables were opened. */
function source(opened: string[] = []): TableSource {
  return {
    names: ['answers', 'unused'],
    open: async (names) => {
      opened.push(...names)
      return names.map((name) => ({ name, sql: `SELECT * FROM read_parquet(['${mine}'])`, files: [mine] }))
    },
    spell: (file) => file,
  }
}

async function ask(sql: string, from = source()) {
  const result = await query(sql, from)
  const rows: unknown[][] = []
  for await (const batch of result.rows()) rows.push(...batch)
  return rows
}

describe('a query', () => {
  test('opens only the tables it names, or all when it asks which there are', async () => {
    const opened: string[] = []
    expect(await ask('SELECT answer FROM "Answers"', source(opened))).toEqual([[42]])
    expect(opened).toEqual(['answers'])
    expect(await ask('SHOW TABLES')).toEqual([['answers'], ['unused']])
    expect(await ask('SELECT count(*) FROM information_schema.tables')).toEqual([[2]])
  })

  test('has views made for names that no table has, and for no others', async () => {
    const asked: string[][] = []
    const opened: string[] = []
    const views: TableSource['views'] = {
      needs: ['answers'],
      async make(names, run) {
        asked.push([...names])
        await run('CREATE VIEW "mart/twice" AS SELECT 2 * answer AS twice FROM answers')
        return {
          names: ['mart/twice', 'never'],
          folders: [],
          absent: new Map([['never', new ServoError('not_found', 'none', 'no')]]),
        }
      },
    }
    const from = { ...source(opened), views }
    expect(await ask('FROM "Mart/twice"', from)).toEqual([[84]])
    expect([asked, opened]).toEqual([[['mart/twice']], ['answers']])
    expect(await ask('FROM unused', from)).toEqual([[42]])
    expect([asked.length, opened]).toEqual([1, ['answers', 'unused']])
    await expect(ask('FROM never', from)).rejects.toMatchObject({ code: 'none' })
    // A name of the query's own hides the view that there is not.
    expect(await ask('WITH never AS (SELECT 1) FROM never', from)).toEqual([[1]])
    await expect(ask('FROM "mart/twic"', from)).rejects.toMatchObject({
      hint: expect.stringContaining('"mart/twice", "never"'),
    })
    // As dbt names it.
    await expect(ask('FROM mart.twice', from)).rejects.toMatchObject({
      message: 'table mart.twice not found',
      hint: expect.stringMatching(/^Did you mean "mart\/twice"\? /),
    })
  })

  test.each([
    'DESCRIBE answers',
    'SUMMARIZE answers',
    'EXPLAIN FROM answers',
    'EXPLAIN ANALYZE FROM answers',
    'WITH a AS (FROM answers) FROM a',
    'PIVOT answers ON answer IN (42) USING count(*)',
    'VALUES (1)',
    'FROM range(3)',
  ])('may be %s', async (sql) => expect((await ask(sql)).length).toBeGreaterThan(0))

  test('that names no table says which there are, and which was probably meant', async () => {
    await expect(ask('FROM answrs')).rejects.toMatchObject({
      kind: 'invalid',
      message: 'table answrs not found',
      hint: 'Did you mean answers? Tables: answers, unused.',
    })
    await expect(ask('FROM nothing_like_it')).rejects.toMatchObject({ hint: 'Tables: answers, unused.' })
  })

  test('that cannot be read says how to write it', async () => {
    const hintOf = async (sql: string): Promise<string> => (await ask(sql).catch((error) => error)).hint
    expect(await hintOf('select * from mart/revenue')).toBe('Write "mart/revenue" in double quotes.')
    expect(await hintOf('selekt')).toBe('Did you mean select?')
    expect(await hintOf('selec state from runs')).toBe('Did you mean select?')
    expect(await hintOf('select * form runs')).toBe('Did you mean from instead of form?')
    expect(await hintOf('select * from runs were 1 = 1')).toBe('Did you mean where instead of were?')
    expect(await hintOf('describe mart/revenue')).toBe('Write "mart/revenue" in double quotes.')
    expect(await hintOf('hello')).toMatch(/^Write one SELECT/)
    expect(await hintOf('select 1 +')).toMatch(/^Check the statement/)
    const quote = /^Text needs single quotes: /
    expect(await hintOf('FROM answers WHERE answer = why')).toMatch(quote)
    expect(await hintOf('FROM answers WHERE answer = "why"')).toMatch(quote)
    expect(await hintOf("FROM answers WHERE answer::text || 'x' = 2025-01-15")).toMatch(quote)
    expect(await hintOf('SELECT anser FROM answers')).not.toMatch(quote)
    expect(await hintOf('PIVOT answers ON answer')).toContain('PIVOT needs its values')
    expect(await hintOf('DROP TABLE answers')).not.toContain('PIVOT')
  })

  test.each(['', '  ;', 'SELECT 1; SELECT 2', 'selekt', 'SELECT $1', 'SELECT nothing FROM answers'])(
    'that is no query is refused: %j',
    async (sql) => await expect(ask(sql)).rejects.toMatchObject({ kind: 'invalid' }),
  )

  test('over a damaged file names it', async () => {
    const damaged = path.join(folder, 'damaged.parquet')
    fs.writeFileSync(damaged, 'PAR1 nonsense PAR1')
    const from = {
      ...source(),
      open: async () => [{ name: 'answers', sql: `SELECT * FROM read_parquet(['${damaged}'])`, files: [damaged] }],
    }
    await expect(ask('FROM answers', from)).rejects.toMatchObject({
      kind: 'corrupt',
      message: expect.stringContaining('damaged.parquet'),
    })
  })

  test('over a file that is gone names it, whenever it went', async () => {
    const file = path.join(folder, 'short-lived.parquet')
    const shown = { name: 'answers', sql: `SELECT * FROM read_parquet(['${file}'])`, files: [file] }
    const from = { ...source(), open: async () => [shown] }
    await expect(ask('FROM answers', from)).rejects.toMatchObject({
      kind: 'corrupt',
      message: expect.stringContaining('short-lived.parquet'),
    })
    fs.copyFileSync(mine, file)
    // Names that are spelled after the views are made: from here on the file is gone.
    const spell = (name: string): string => {
      fs.rmSync(file, { force: true })
      return name
    }
    const late = { ...from, spell }
    await expect(ask('FROM answers', late)).rejects.toMatchObject({
      kind: 'corrupt',
      message: expect.stringContaining('short-lived.parquet'),
    })
  })

  test('that is left half way ends', async () => {
    const { rows } = await query('SELECT range FROM range(10_000_000)', source())
    for await (const batch of rows()) {
      expect(batch[0]).toEqual([0])
      break
    }
  })
})

describe('a query can read nothing but its tables and write nothing', () => {
  const files = () =>
    fs.readdirSync(folder, { recursive: true }).map((name) => `${name} ${fs.statSync(path.join(folder, String(name))).size}`)
  const attempts = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('{folder}/other.parquet')",
    "FROM '{folder}/other.parquet'",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM parquet_metadata('{folder}/other.parquet')",
    "COPY (SELECT 1) TO '{folder}/new.parquet'",
    "COPY (SELECT 1) TO '{mine}' (use_tmp_file false)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{mine}' (use_tmp_file false)",
    "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{mine}' (use_tmp_file false)",
    "explain/**/analyze copy (SELECT 1) TO '{mine}' (use_tmp_file false)",
    "PREPARE p AS COPY (SELECT 1) TO '{mine}' (use_tmp_file false)",
    "SELECT 1; COPY (SELECT 1) TO '{mine}' (use_tmp_file false)",
    "EXPORT DATABASE '{folder}/exported'",
    "ATTACH '{folder}/new.db'",
    "IMPORT DATABASE '{folder}'",
    'INSTALL httpfs',
    'LOAD httpfs',
    "LOAD '{folder}/x.duckdb_extension'",
    'SET enable_external_access = true',
    "SET allowed_directories = ['/']",
    'RESET lock_configuration',
    "PRAGMA profiling_output = '{folder}/profile.json'",
    "FROM enable_profiling(format = 'json', save_location = '{folder}/profile.json')",
    "FROM enable_logging(storage = 'file', storage_path = '{folder}/logs')",
    "CALL enable_logging(storage = 'file', storage_path = '{folder}/logs')",
    "SELECT * FROM query('FROM enable_logging()')",
    "SELECT (SELECT count(*) FROM query_table('answers'))",
    "FROM json_execute_serialized_sql('{}')",
    "FROM sql_auto_complete('FROM ''/etc/')",
    'CREATE PERSISTENT SECRET s (TYPE http)',
    'CREATE TABLE t AS FROM answers',
    'DROP VIEW answers',
    'CHECKPOINT',
    "SELECT * FROM read_duckdb('{folder}/x.db')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM 'https://example.com/x.parquet'",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "SELECT getenv('HOME')",
    'PRAGMA database_list',
    'SELECT * FROM pragma_database_size()',
    "ATTACH ':memory:' AS y",
    "SET memory_limit = '100GB'",
    "EXPORT DATABASE '{folder}/out'",
    "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "DESCRIBE SELECT * FROM read_text('/etc/passwd')",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
    'SELECT * FROM duckdb_secrets()',
    'CALL pragma_version()',
    "SELECT * FROM query_table('/etc/passwd')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
  ]
  test.each(attempts)('%s', async (attempt) => {
    const before = files()
    await expect(ask(attempt.replaceAll('{folder}', folder).replaceAll('{mine}', mine))).rejects.toMatchObject({
      name: 'ServoError',
    })
    expect(files()).toEqual(before)
    expect(await ask('FROM answers')).toEqual([[42]])
  })

  test('nor can it spill into the folder we stand in', async () => {
    expect(await ask("SELECT current_setting('temp_directory')")).toEqual([['']])
  })
})

describe('values are plain data', () => {
  const one = async (expression: string): Promise<unknown> => (await ask(`SELECT ${expression}`))[0]?.[0]
  test.each([
    ['NULL', null],
    ['true', true],
    ['7::BIGINT', 7],
    ['9007199254740993', '9007199254740993'],
    ['sum(1::HUGEINT) FROM range(3)', 3],
    ['170141183460469231731687303715884105727', '170141183460469231731687303715884105727'],
    ['1.50', 1.5],
    ['1234567890123456.789', '1234567890123456.789'],
    ["'nan'::DOUBLE", 'NaN'],
    ["TIMESTAMPTZ '2025-01-15 10:00:00+01'", '2025-01-15T09:00:00.000Z'],
    ["TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'", '1969-12-31T23:59:59.999999Z'],
    ["TIMESTAMP '2025-01-15 10:00:00.5'", '2025-01-15T10:00:00.500'],
    ["'infinity'::TIMESTAMPTZ", 'infinity'],
    ["DATE '2025-01-15'", '2025-01-15'],
    ["['a', NULL]", ['a', null]],
    ["MAP {'b': '1', '__proto__': '2'}", JSON.parse('{"b":"1","__proto__":"2"}')],
    ['MAP {1: 2}', [{ key: 1, value: 2 }]],
    ["{'a': [1], 'b': {'c': NULL}}", { a: [1], b: { c: null } }],
    [`'{"a":[1,"x"]}'::JSON`, { a: [1, 'x'] }],
    [`['{"a":1}'::JSON]`, [{ a: 1 }]],
    ["'\\xFF'::BLOB", '/w=='],
    ['INTERVAL 90 MINUTE', '01:30:00'],
  ])('%s', async (expression, expected) => expect(await one(expression)).toEqual(expected))

  test('columns of the same name are told apart', async () => {
    const { columns } = await query('SELECT 1 AS a, 2 AS a', source())
    expect(new Set(columns.map(({ name }) => name)).size).toBe(2)
  })
})
