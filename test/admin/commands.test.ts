import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { requestOf } from '../../public/command-text.ts'
import { rawRequest, startAdmin, TOKEN } from '../support/admin.ts'
import { aMember, aRollout, createFakeFleet } from '../support/fake-fleet.ts'
import { callsOf, OPERATIONS } from '../support/operations.ts'

const VIEWS = new URL('../../views/', import.meta.url)

/**
 * What a dialog asks for that has a choice of operations, or that steers all hosts; of all others see
 * operations.test.ts.
 */
const FORMS: [string, Record<string, string>][] = [['deployCommit,startRollout', { kind: 'deploy', git: 'v2',
  guess: 'true', note: '', 'strategy.surge': '', 'strategy.canary.workers': '1', 'strategy.onFailure': 'hold' }], [
  'deployCommit,startRollout',
  { kind: 'deploy', git: '' }
], ['startFleetRollout', { kind: 'deploy', note: 'a "note"', batch: '25%', pauseMs: '30000', order: 'zone',
  canary: 'b-2', onFailure: 'rollback' }], ['startFleetRollout', { kind: 'restart', batch: '1', pauseMs: '', order: '',
  canary: '' }], ['startFleetRollout', { kind: 'rollback', note: '', batch: '2', pauseMs: '', order: '', canary: '',
  onFailure: 'hold' }], ['resumeFleetRollout', { seen: '7' }], ['abortFleetRollout', { seen: '7' }]]

function fleetFor (names: string) {
  const members = [aMember({ member: 'a-1', isOwn: true }), aMember({ member: 'b-2' })]
  return createFakeFleet({ members,
    rollout: /^(resume|abort)Fleet/.test(names) ? { ...aRollout(['a-1', 'b-2']), state: 'paused' } : null })
}

function callFor (names: string, fields: Record<string, string>) {
  return callsOf(names).filter(({ needs }) => needs.every((name) => fields[name]))[0]
}

/** As JSON: what is undefined is not there. */
const withoutActors = (commands: unknown[]) =>
  JSON.parse(JSON.stringify(commands, (key, value) => key === 'actor' || key === 'client' ? undefined : value))

for (const [names, fields] of FORMS) {
  const title = [names, ...Object.values(fields)].join(' ')
  test(`the command that the dialog shows does what the dialog does: ${title}`, async (t) => {
    const form = await startAdmin(t)
    const api = await startAdmin(t)
    const [formFleet, apiFleet] = [form, api].map(({ deck }) => deck.fleet = fleetFor(names))
    const posted = await form.post(names, fields)
    assert.equal(posted.status, 204, posted.text)
    const { method, path, headers, body } = requestOf(callFor(names, fields), fields)
    const asked = await rawRequest(api, { method, path,
      headers: { ...headers, authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }) })
    assert.ok(asked.status < 300, asked.text)
    assert.deepEqual(withoutActors(api.deck.dispatched), withoutActors(form.deck.dispatched))
    assert.deepEqual(withoutActors(apiFleet.asked), withoutActors(formFleet.asked))
    assert.equal(formFleet.asked.length, names.includes('Fleet') ? 1 : 0)
  })
}

test('every operation that a form asks for is one of the API', () => {
  const files = ['pages', 'partials'].flatMap((folder) =>
    readdirSync(new URL(folder, VIEWS)).map((name) => readFileSync(new URL(`${folder}/${name}`, VIEWS), 'utf8'))
  )
  const names = files.flatMap((text) =>
    Array.from(text.matchAll(/(?:post\(|actions: \[)'([\w, ']+)'/g), ([, found]) => found)
  ).flatMap((found) => found.split(/[, ']+/))
  assert.ok(names.length > 20, `${names.length} names`)
  assert.deepEqual(
    names.filter((name) => !OPERATIONS.get(name)?.operation.form && !['apps', 'switch', 'forgetHost'].includes(name)),
    []
  )
})
