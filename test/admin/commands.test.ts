import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { requestOf } from '../../public/command-text.ts'
import { settingState } from '../../server/api/config.ts'
import { onMember } from '../../server/api/form.ts'
import { rawRequest, startAdmin, TOKEN } from '../support/admin.ts'
import { aMember, aRollout, createFakeFleet } from '../support/fake-fleet.ts'
import { callsOf, OPERATIONS } from '../support/operations.ts'

const VIEWS = new URL('../../views/', import.meta.url)

/** What each dialog asks for, and holds. */
const FORMS: [string, Record<string, string>][] = [['startRollout', { kind: 'restart' }], ['startRollout', {
  kind: 'deploy',
  note: 'a "note"',
  'strategy.surge': '25%',
  'strategy.canary.workers': '1',
  'strategy.canary.durationMs': '120000',
  'strategy.onFailure': ''
}], ['deployCommit,startRollout', { kind: 'deploy', git: 'v2', guess: 'true', note: '', 'strategy.surge': '',
  'strategy.canary.workers': '1', 'strategy.onFailure': 'hold' }], ['deployCommit,startRollout', { kind: 'deploy',
  git: '' }], ['startRollout', { kind: 'rollback', release: 'r1', note: '' }], ['setScale', { workers: '3' }], [
  'abortRollout',
  { id: '1' }
], ['promoteRollout', { id: '1' }], ['startFleetRollout', { kind: 'deploy', note: 'a "note"', batch: '25%',
  pauseMs: '30000', order: 'zone', canary: 'b-2', onFailure: 'rollback' }], ['startFleetRollout', { kind: 'restart',
  batch: '1', pauseMs: '', order: '', canary: '' }], ['startFleetRollout', { kind: 'rollback', note: '', batch: '2',
  pauseMs: '', order: '', canary: '', onFailure: 'hold' }], ['resumeFleetRollout', { seen: '7' }], ['abortFleetRollout',
  { seen: '7' }], ['restartWorker', { id: '2' }], ['killWorker', { id: '2' }], ['endWorkerConnections', { id: '2' }], [
  'startDiagnostics',
  { id: '2', kind: 'heap-snapshot' }
], ['sendMessage', { worker: '', type: 'reload', data: '{"a":1}' }], ['sendMessage', { worker: '2', type: 'reload',
  data: '' }], ['changeConfig', { name: 'drain.deadlineMs', value: '7000' }], ['startRollout', { kind: 'restart',
  member: 'b-2' }], ['setScale', { member: 'b-2', workers: '3' }], ['restartWorker', { member: 'b-2', id: '2' }], [
  'killWorker',
  { member: 'b-2', id: '2' }
]]
/** What is steered has to run. */
const DEPLOY = { type: 'rollout', kind: 'deploy', actor: 'cli' } as const

function fleetFor (names: string) {
  const members = [aMember({ member: 'a-1', isOwn: true }), aMember({ member: 'b-2' })]
  return createFakeFleet({ members,
    rollout: /^(resume|abort)Fleet/.test(names) ? { ...aRollout(['a-1', 'b-2']), state: 'paused' } : null })
}

function callFor (names: string, fields: Record<string, string>) {
  const [call] = callsOf(names).filter(({ needs }) => needs.every((name) => fields[name]))
  return fields.member ? onMember(call) : call
}

/** As JSON: what is undefined is not there. */
const withoutActors = (commands: unknown[]) =>
  JSON.parse(JSON.stringify(commands, (key, value) => key === 'actor' || key === 'client' ? undefined : value))

for (const [names, fields] of FORMS) {
  const title = [names, ...Object.values(fields)].join(' ')
  test(`the command that the dialog shows does what the dialog does: ${title}`, async (t) => {
    const form = await startAdmin(t)
    if (fields.id === '1') form.deck.dispatch(DEPLOY)
    const [formFleet, apiFleet] = [fleetFor(names), fleetFor(names)]
    form.deck.fleet = formFleet
    const cookie = await form.signIn()
    const setting = form.deck.settings.list().find(({ name }) => name === fields.name)
    const values = { ...fields, ...(setting && { seen: settingState(setting) }) }
    const posted = await rawRequest(form, { method: 'POST', path: `/actions/${names}`,
      headers: { cookie, origin: form.origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(values).toString() })
    assert.equal(posted.status, 204, posted.text)

    const api = await startAdmin(t)
    if (fields.id === '1') api.deck.dispatch(DEPLOY)
    api.deck.fleet = apiFleet
    const { method, path, headers, body } = requestOf(callFor(names, fields), values)
    const asked = await rawRequest(api, { method, path,
      headers: { ...headers, authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }) })
    assert.ok(asked.status < 300, asked.text)
    assert.deepEqual(withoutActors(api.deck.dispatched), withoutActors(form.deck.dispatched))
    assert.deepEqual(withoutActors(apiFleet.asked), withoutActors(formFleet.asked))
    assert.equal(formFleet.asked.length, fields.member || names.includes('Fleet') ? 1 : 0)
  })
}

test('every operation that a form asks for is one of the API', () => {
  const files = ['pages', 'partials'].flatMap((folder) =>
    readdirSync(new URL(folder, VIEWS)).map((name) => readFileSync(new URL(`${folder}/${name}`, VIEWS), 'utf8'))
  )
  const names = files.flatMap((text) =>
    Array.from(text.matchAll(/(?:post\(|actions: \[)'([\w, ']+)'/g), ([, found]) => found)
  ).flatMap((found) => found.split(/[, ']+/))
  assert.ok(names.length > 30, `${names.length} names`)
  assert.deepEqual(
    names.filter((name) => !OPERATIONS.get(name)?.operation.form && !['apps', 'switch', 'forgetHost'].includes(name)),
    []
  )
})
