import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeckError } from '../../../server/errors.ts'
import { fleetLines } from '../../../server/fleet/api-logs.ts'
import fc from '../../support/fast-check.ts'
import { fake } from '../../support/fake.ts'
import { noMember } from '../../../server/fleet/presence.ts'
import type { AppFleet } from '../../../server/fleet/app-fleet.ts'
import type { Person } from '../../../server/fleet/rpc-client.ts'

const ADA = { name: 'ada', actor: 'ada', role: 'viewer', client: 'api' } as Person

test('page by page each line of each member comes once, in the order of time', async () => {
  const line = fc.record({ member: fc.nat({ max: 2 }), ms: fc.nat({ max: 12 }) })
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 40 }), fc.integer({ min: 3, max: 8 }), async (lines, count) => {
      const written = lines.toSorted((one, other) => one.ms - other.ms).map(({ member, ms }, index) =>
        lineOf(`web-${member}`, ms, String(index))
      )
      // Where more lines of a member than a page has were written at the same time, nobody can page between them.
      fc.pre(['web-0', 'web-1', 'web-2'].every((name) =>
        written.every((one) =>
          written.filter(({ member, arrivedAt }) =>
            member === name && arrivedAt === one.arrivedAt
          ).length < count
        )
      ))
      fc.pre(written.every((one) => written.filter(({ arrivedAt }) => arrivedAt === one.arrivedAt).length <= count))
      const deck = fleetOf(written)
      const found = []
      for (let cursor: string | undefined;;) {
        const { items, next } = await fleetLines(deck, { member: '*', lines: count, cursor }, ADA)
        found.unshift(...items.map(({ text }) => text))
        if (next === null) break
        cursor = next
      }
      assert.deepEqual(found.toSorted(), written.map(({ text }) => text).toSorted())
      assert.deepEqual(found.map((text) => written[Number(text)].arrivedAt), written.map(({ arrivedAt }) => arrivedAt))
    }),
    { numRuns: 60 }
  )
})

test('around a time it has the nearest lines of all members', async () => {
  const deck = fleetOf([1, 2, 3, 4, 5, 6].map((ms) => lineOf(`web-${ms % 2}`, ms, `line ${ms}`)))
  assert.deepEqual(
    (await fleetLines(deck, { member: '*', lines: 4, around: 4 }, ADA)).items.map(({ member, text }) => [member, text]),
    [['web-0', 'line 2'], ['web-1', 'line 3'], ['web-0', 'line 4'], ['web-1', 'line 5']]
  )
})

test('names who is silent, who refuses and who searched only in part; cuts what is too long; and believes no other answer', async () => {
  const answers: Record<string, () => object> = {
    'web-1': () => ({ items: [{ ...lineOf('', 1, 'x'.repeat(9000)), more: 1 }], next: '1o7' }),
    'web-2': () => {
      throw new DeckError('timed-out', 'web-2 did not answer within 6 s')
    },
    'web-3': () => {
      throw new DeckError('forbidden', 'no')
    },
    'web-4': () => ({ items: [{ ...lineOf('', 1, 'x'), place: '<script>' }], next: null }),
    'web-5': () => ({ items: Array(100).fill({ ...lineOf('', 1, 'x'), arrivedAt: '2026-99-99T99:99:99.999Z' }),
      next: null })
  }
  const deck = deckOf(Object.keys(answers), async (member) => answers[member]())
  const { items, hosts, next } = await fleetLines(deck, { member: '*' }, ADA)
  assert.deepEqual(items.map(({ member, text }) => [member, text.length]), [['web-1', 4000]])
  assert.deepEqual({ ...hosts, next }, { asked: 5, answered: 1, silent: ['web-2'],
    refused: [{ member: 'web-3', problem: 'no' },
      ...['web-4', 'web-5'].map((member) => ({ member,
        problem: `${member} sent an answer that this version cannot read` })
      )], cut: ['web-1'], next: null })
  await assert.rejects(fleetLines(deck, { member: '*', cursor: '1o7' }, ADA), { code: 'invalid-query' })
  await assert.rejects(fleetLines(deck, { member: '*', lines: 201 }, ADA), { code: 'invalid-query' })
  await assert.rejects(fleetLines(deck, { member: 'web-9' }, ADA), { code: 'not-found',
    message: 'The fleet has no member "web-9" (did you mean "web-1"?)' })
})

function lineOf (member: string, ms: number, text: string) {
  return { member, slot: 1, stream: 'stdout', text, arrivedAt: new Date(ms).toISOString(), place: '1o0' }
}

/** `written`: oldest first */
function fleetOf (written: ReturnType<typeof lineOf>[]) {
  return deckOf(['web-0', 'web-1', 'web-2'], async (member, { path }) => {
    const query = new URLSearchParams(path.split('?')[1])
    const count = Number(query.get('lines'))
    const own = written.filter((line) => line.member === member).map(({ member: _, ...line }) => line)
    const around = query.get('around')
    if (around)
      return {
        items: [...own.filter(({ arrivedAt }) => arrivedAt < around).slice(-Math.ceil(count / 2)),
          ...own.filter(({ arrivedAt }) => arrivedAt >= around).slice(0, Math.floor(count / 2))],
        next: null
      }
    const older = own.filter(({ arrivedAt }) => arrivedAt < String(query.get('until')))
    return { items: older.slice(-count), next: older.length > count ? '1o0' : null }
  })
}

function deckOf (names: string[], obtain: (member: string, order: { path: string }) => Promise<object>) {
  return { fleet: fake<AppFleet>({ obtain, async members (only) {
    if (only !== undefined && !names.includes(only)) throw noMember(only, names)
    return (only === undefined ? names : [only]).map((member) => ({ member }))
  } }) }
}
