import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleetCrashResources } from '../../../server/fleet/api-crashes.ts'
import { fleetCrashesModel, followFleetCrashes } from '../../../server/fleet/page-crashes.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { aMember, createFakeFleet } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'

const MEMBERS = [aMember({ member: 'web-1', isOwn: true }),
  aMember({ member: 'web-2', url: 'https://two.example/deck/' }), aMember({ member: 'web-3' })]
const AT = '2026-01-01T12:00:00.000Z'
const FINGERPRINT = `v1:${'1'.repeat(32)}`

const aGroup = (fields?: object) => ({ id: 7, fingerprint: FINGERPRINT, state: 'open', kind: 'exception',
  cause: 'crash', errorName: 'TypeError', message: 'x is undefined', culprit: null, count: 2, firstSeenAt: AT,
  lastSeenAt: AT, firstRelease: 'r4', lastRelease: 'r4', lastCrash: 1, stateChangedAt: null, stateChangedBy: null,
  goneSince: null, returnedAt: null, isNewInRelease: true, hasReturned: false, ...fields })

/** `said`: the groups of each member; null: it refuses */
function fleetWith (said: Record<string, object[] | null> = {}, members = MEMBERS) {
  const asked: string[] = []
  const fleet = createFakeFleet({ members, answer (member, { path }) {
    const items = said[member] === undefined ? [aGroup()] : said[member]
    asked.push(`${member} ${path}`)
    return items
      ? { status: 200, body: { items, next: null } }
      : { status: 403, body: { code: 'forbidden', detail: 'no' } }
  } })
  const modelOf = (params: string) =>
    fleetCrashesModel({ deck: { fleet }, params: new URLSearchParams(params), now: () => 0 })
  return { fleet, asked, modelOf }
}

test('one fault on three hosts is one row, which says where it is new and leads to the crash on each host', async () => {
  const { groups: [row] } = await fleetWith().modelOf('member=*')
  assert.deepEqual([row.count, row.newIn, row.mixed, row.url], [6, 'r4', null, '/crashes/7'])
  assert.deepEqual(row.hosts.map(({ member, url }) => [member, url]), [['web-1', '/crashes/7'], ['web-2',
    'https://two.example/deck/crashes/7'], ['web-3', '/fleet/members/web-3']])
  const { groups: [mixed] } = await fleetWith({ 'web-1': [],
    'web-3': [aGroup({ state: 'resolved', lastRelease: 'r9' })] }).modelOf('member=*')
  assert.deepEqual([mixed.newIn, mixed.mixed], ['its release', 'open on 1, resolved on 1'])
})

test('who did not answer is named, and filters are in the address and in what is asked', async () => {
  const { asked, modelOf } = fleetWith({ 'web-3': null }, [MEMBERS[0], { ...MEMBERS[1], isSilent: true }, MEMBERS[2]])
  const all = await modelOf('state=all&q=undefined&member=*&sort=count')
  assert.deepEqual(all.hosts, { missing: 'Left out: web-2 and web-3 did not answer.',
    answered: '1 of 3 members answered', cut: null })
  assert.deepEqual([asked.splice(0), all.canonicalUrl], [
    ['web-1', 'web-3'].map((member) => `${member} /crashes?limit=100&q=undefined`),
    '/crashes?member=*&state=all&q=undefined&sort=count'
  ])
  const one = await modelOf('member=web-1')
  assert.deepEqual([asked, one.groups.length, one.links.everywhere], [['web-1 /crashes?limit=100'], 1,
    '/crashes?member=web-1&state=all'])
  for (const [params, status] of [['member=*&state=nonsense', 400], ['member=a b', 400], ['member=web-9',
    404]] as const)
    assert.equal((await modelOf(params)).problem?.status, status, params)
})

test('what another host says is text, whatever it says', async () => {
  const { modelOf } = fleetWith({ 'web-1': [],
    'web-2': [aGroup({ errorName: '<img src=x>', message: '"><script>', culprit: '<b>', kind: '<i>', cause: '<u>' })],
    'web-3': [] })
  const model = await modelOf('member=*')
  assert.equal(model.groups.length, 1)
  assert.doesNotMatch(createViews().render('pages/crashes', { ...model, can: { operate: true }, hasFleet: true }),
    /<img|<b>|<i>|<u>|<script>(?!<)/)
})

test('a group that somebody has settled is shown as such at once, and else nobody is asked for a while', async () => {
  const { fleet, asked } = fleetWith()
  let at = 0
  const params = new URLSearchParams('member=*')
  const follow = followFleetCrashes(fake({ deck: { fleet }, params, now: () => at }))
  const look = async () => {
    follow()
    await new Promise((resolve) => setTimeout(resolve))
    return asked.splice(0).length
  }
  assert.equal(await look(), 0)
  at = 5000
  const { POST: resolve } = fleetCrashResources({ deck: { fleet } })['/fleet/crashes/:fingerprint/resolve']
  const auth = { name: 'ada', actor: 'ada', role: 'operator', client: 'api' } as const
  await resolve?.handle(fake({ params: { fingerprint: FINGERPRINT }, auth }))
  assert.deepEqual(fleet.asked.map(({ member, path, actor }) => [member, path, actor]),
    ['web-1', 'web-2', 'web-3'].map((member) => [member, '/crashes/7/resolve', 'ada']))
  asked.splice(0)
  assert.equal(await look(), 3)
  assert.equal(await look(), 0)
  at = 15_000
  assert.equal(await look(), 3)
})
