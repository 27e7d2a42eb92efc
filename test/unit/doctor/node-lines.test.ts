import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releasesIn, tableOf } from '../../../build/node-lines.ts'
import { assertRetold } from '../../support/golden.ts'
import { judgeNodes, lineToTake, nodesInUse, type Table } from '../../../server/doctor/node-lines.ts'

const TABLE: Table = { asOf: '2026-11-29',
  lines: { 20: { lts: '2023-10-24', end: '2026-04-30' },
    22: { lts: '2024-10-29', end: '2027-04-30', security: { version: '22.9.2', date: '2026-11-11' } },
    23: { end: '2027-06-01' },
    24: { lts: '2025-10-28', end: '2028-04-30', security: { version: '24.10.3', date: '2026-11-11' } },
    26: { lts: '2027-01-28', end: '2029-04-30' } } }

test('says of a Node whether it still gets fixes, and whether it lacks one', async () => {
  await assertRetold(import.meta, 'node-lines', (given) => {
    const [version, day] = given.split(' on ')
    const [{ state, title, why }] = judgeNodes(nodesInUse(version, null), { now: Date.parse(day), table: TABLE })
    return `${state}: ${title}. ${why}`
  })
})

test('tells clusterdeck and the app in one sentence where both run on the same Node, and each by its own elsewhere', () => {
  const titles = (app: string) =>
    judgeNodes(nodesInUse('v24.9.0', app), { now: Date.parse('2026-12-01'), table: TABLE }).map((
      { title, take }
    ) => [title.split(',')[0], take])
  assert.deepEqual(titles('v24.9.0'), [['clusterdeck and the app run on Node 24.9.0', '24.10.3']])
  assert.deepEqual(titles('v20.1.0'), [['clusterdeck runs on Node 24.9.0', '24.10.3'], ['The app runs on Node 20.1.0',
    '24']])
  assert.equal(lineToTake(Date.parse('2026-12-01'), ([major]) => major < 24, TABLE), '22')
})

test('the table has each line that has begun, and the last security release of those with fixes, by the numbers of its version', () => {
  const notes = ['2026-11-11, Version 24.10.0 \'Krypton\' (LTS), @ada\n\nThis is a security release.\n\n### Commits',
    '2026-10-11, Version 24.9.1 \'Krypton\' (LTS), @ada\n\nThis is a security release.\n',
    '2026-11-12, Version 24.10.1 \'Krypton\' (LTS), @ada\n\n### Notable Changes\nThis is a security release\n'].map((
      each
    ) => `\n## ${each}`).join('\n')
  const schedule = { 'v0.12': { start: '2015-02-06', end: '2016-12-31' },
    v24: { start: '2025-05-06', lts: '2025-10-28', end: '2028-04-30' },
    v20: { start: '2023-04-18', lts: '2023-10-24', end: '2026-04-30' },
    v27: { start: '2027-04-22', end: '2030-04-30' } }
  const releases = [...releasesIn(notes), { version: 'v20.20.2', date: '2026-03-24', security: true }]
  assert.deepEqual(tableOf(schedule, releases, '2026-11-29'), { asOf: '2026-11-29',
    lines: { 20: { lts: '2023-10-24', end: '2026-04-30' },
      24: { lts: '2025-10-28', end: '2028-04-30', security: { version: '24.10.0', date: '2026-11-11' } } } })
  assert.throws(() => tableOf({ v24: { start: '2025-05-06', end: 'soon' } }, [], '2026-11-29'),
    /expected a day, received "soon"/)
})
