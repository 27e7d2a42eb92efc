import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleetCrashesModel, followFleetCrashes } from '../../../server/dashboard/fleet-crashes-page.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { aMember, createFakeFleet } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'
import type { FleetCrashGroup } from '../../../server/api/fleet-crashes.ts'

const MEMBERS = [aMember({ member: 'web-1', isOwn: true }),
  aMember({ member: 'web-2', url: 'https://two.example/deck/' }), aMember({ member: 'web-3' })]
const AT = '2026-01-01T12:00:00.000Z'

const on = (member: string, fields?: object) => ({ member, id: 7, count: 2, state: 'open' as const, lastSeenAt: AT,
  lastRelease: 'r4', ...fields })

const aGroup = (fields?: object): FleetCrashGroup => ({ fingerprint: `v1:${'1'.repeat(32)}`, state: 'open',
  kind: 'exception', cause: 'crash', errorName: 'TypeError', message: 'x is undefined', culprit: null, count: 6,
  firstSeenAt: AT, lastSeenAt: AT, isNewInRelease: true, hasReturned: false,
  members: ['web-1', 'web-2', 'web-3'].map((name) => on(name)), ...fields })

async function modelOf (found: object, params: string = '') {
  const fleet = createFakeFleet({ members: MEMBERS })
  const asked: unknown[] = []
  fleet.crashes = async (filter) => {
    asked.push(filter)
    return { asked: 3, answered: 3, silent: [], refused: [], cut: [], items: [aGroup()], ...found }
  }
  const deck = { fleet }
  return { model: await fleetCrashesModel({ deck, params: new URLSearchParams(params), now: () => 0 }), asked, deck,
    fleet }
}

test('one fault on three hosts is one row, which says where it is new and leads to the crash on each host', async () => {
  const { model: { groups: [row] } } = await modelOf({})
  assert.deepEqual([row.count, row.newIn, row.mixed, row.url], [6, 'New in r4', null, '/crashes/7'])
  assert.deepEqual(row.hosts.map(({ member, url }) => [member, url]), [['web-1', '/crashes/7'], ['web-2',
    'https://two.example/deck/crashes/7'], ['web-3', '/fleet/members/web-3']])
  const { model: { groups: [mixed] } } = await modelOf({
    items: [aGroup({ state: 'mixed', members: [on('web-2'), on('web-3', { state: 'resolved', lastRelease: 'r9' })] })]
  })
  assert.deepEqual([mixed.newIn, mixed.mixed, mixed.actions.map(({ action }) => action)], ['New in its release',
    'open on 1, resolved on 1', ['resolve', 'mute', 'reopen']])
})

test('who did not answer is named, and filters are in the address and in what is asked', async () => {
  const { model, asked } = await modelOf({ answered: 1, silent: ['web-2'],
    refused: [{ member: 'web-3', problem: 'no' }] }, 'state=all&q=undefined&member=web-9')
  assert.deepEqual([model.missing, model.answered], ['Left out: web-2 and web-3 did not answer.',
    '1 of 3 members answered'])
  assert.deepEqual([asked, model.groups.length, model.canonicalUrl], [[{ q: 'undefined' }], 0,
    '/fleet/crashes?state=all&q=undefined&member=web-9'])
  assert.deepEqual((await modelOf({})).asked, [{ q: undefined, state: 'open' }])
  assert.equal((await modelOf({}, 'state=nonsense')).model.problem?.status, 400)
})

test('what another host says is text, whatever it says', async () => {
  const { model } = await modelOf({
    items: [
      aGroup({ errorName: '<img src=x>', message: '"><script>', culprit: '<b>', kind: '<i>',
        members: [on('web-2', { lastRelease: '<u>' })] })
    ]
  })
  assert.doesNotMatch(createViews().render('pages/fleet-crashes', model), /<img|<b>|<i>|<u>|<script>(?!<)/)
})

test('a group that somebody has settled is shown as such at once, and else nobody is asked for a while', async () => {
  const { asked, deck, fleet } = await modelOf({})
  let at = 0
  const follow = followFleetCrashes(fake({ deck, params: new URLSearchParams(), now: () => at }))
  const look = async () => {
    follow()
    await new Promise((resolve) => setImmediate(resolve))
    return asked.length - 1
  }
  assert.equal(await look(), 0)
  at = 5000
  fleet.settledTimes = () => 1
  assert.equal(await look(), 1)
  assert.equal(await look(), 1)
  at = 15_000
  assert.equal(await look(), 2)
})
