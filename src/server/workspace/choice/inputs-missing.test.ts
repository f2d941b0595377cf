import { expect, test } from 'vitest'
import type { PreviewBody } from '../../../api/run-contract.ts'
import { neverMade } from './inputs-missing.ts'

const days = Array.from({ length: 80 }, (_, i) => `d${i + 1}`)
const missing = new Map([['raw', new Map(days.map((day) => [day, new Map([['month', 'month[2025-01]']])]))]])
const refusal = (asked: PreviewBody, toMake = ['raw[d1..d80]']): string => {
  const { message, hint } = neverMade(missing, toMake, asked)
  return `${message}. ${hint}`
}
const NEEDS = 'month[2025-01] needs raw[d1], raw[d2], raw[d3] and 77 more, which were never materialized.'

test('names the first few inputs that were never made and how many there are, and the command that makes them too', () => {
  expect(refusal({ select: ['month'], partitions: ['2025-01'] })).toBe(
    `${NEEDS} Materialize them in the same run: servo run 'raw[d1..d80]' month --partition 2025-01`,
  )
  expect(refusal({ select: ["owner:'ana'"], only: ['stale'] })).toBe(
    `${NEEDS} Materialize them in the same run: servo run 'raw[d1..d80]' 'owner:'\\''ana'\\''' --stale`,
  )
})

test('where one run cannot be asked for both, they are made first', () => {
  expect(refusal({ only: ['failed'] })).toBe(`${NEEDS} Materialize them first: servo run 'raw[d1..d80]'`)
  const scattered = days.filter((_, i) => i % 2 === 0).map((day) => `raw[${day}]`)
  expect(refusal({ select: ['month'], partitions: ['2025-01'] }, scattered)).toBe(
    `${NEEDS} Materialize them first: servo run '+key:"raw"' --missing`,
  )
})

test('each asset is named with the inputs that it lacks itself, and an asset of several tasks as a whole', () => {
  const lacking = new Map([
    ['raw', new Map(['d1', 'd2'].map((day) => [day, new Map([['sum', `sum[${day}]`]])]))],
    [
      'rates',
      new Map([
        [
          '',
          new Map([
            ['sum', 'sum[d1]'],
            ['best', 'best[d1]'],
          ]),
        ],
      ]),
    ],
    ['ranked', new Map([['d1', new Map([['best', 'best[d1]']])]])],
  ])
  expect(neverMade(lacking, ['raw', 'rates', 'ranked'], { select: ['sum', 'best'] }).message.split('\n')).toEqual([
    'sum needs raw[d1], raw[d2], rates, which were never materialized',
    '  best[d1] needs rates, ranked[d1], which were never materialized',
  ])
  const many = Array.from({ length: 7 }, (_, i) => [`mart${i}`, `mart${i}`] as const)
  const { message } = neverMade(new Map([['raw', new Map([['', new Map(many)]])]]), ['raw'], {})
  expect(message).toMatch(/^mart0 needs raw, which was never materialized\n.*\n {2}and so on for 2 more assets$/s)
})
