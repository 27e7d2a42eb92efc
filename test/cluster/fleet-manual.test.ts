import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCliHere } from '../support/cli-here.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { examples, wordsOf } from '../support/examples.ts'
import { writeRelease } from '../support/fleet.ts'
import { tempFolder } from '../support/folder.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { FleetRollout } from '../../server/fleet/api-answers.ts'

const PAGE = readFileSync(fileURLToPath(new URL('../../views/docs/fleet.md', import.meta.url)), 'utf8')
const NAMES = ['web-1', 'web-2', 'web-3']
const OF_FLEET = /^clusterdeck fleet\b|--member |--all-hosts/

type Deck = Awaited<ReturnType<typeof startDeckHere>>
type Scene = { decks: Deck[], cwd: string, last: () => Promise<FleetRollout | null> }

/** What an example has instead of what its reader has, made for it where it is to be there first. */
const PREPARED: [RegExp, (scene: Scene, line: string) => Promise<string> | string][] = [[/--pause \d+s/,
  (_scene, line) => line.replace(/--pause \d+s/, '--pause 1s')], [/^clusterdeck fleet pause$/, async (scene, line) => {
  await slow(scene)
  return line
}], [/^clusterdeck fleet abort\b/, async (scene, line) => {
  await slow(scene)
  return line
}], [/^clusterdeck fleet resume$/, async (scene, line) => {
  await slow(scene)
  await post(scene.decks[2], '/fleet/rollout/pause')
  return line
}], [/ v1:[0-9a-f]+$/, async ({ decks }, line) => {
  await fetch(`${await decks[1].appUrl()}/crash`).catch(() => {})
  await decks[1].untilEvent(({ type }) => type === 'crash.group-new', 'a crash')
  const { items } = (await decks[1].api('/crashes')).body
  return line.replace(/v1:[0-9a-f]+$/, items[0].fingerprint)
}]]

test('the page of the fleet leads from nothing to a fleet of three, and each of its examples does what it is there for',
  { skip: withoutNats || rareOnly }, async (t) => {
  const nats = await startNats(t, { config: () => settings() })
  process.env.CLUSTERDECK_FLEET_TOKEN = 'a long secret'
  const { CLUSTERDECK_RUNTIME_DIR: before } = process.env
  t.after(() => {
    delete process.env.CLUSTERDECK_FLEET_TOKEN
    if (before === undefined) delete process.env.CLUSTERDECK_RUNTIME_DIR
    else process.env.CLUSTERDECK_RUNTIME_DIR = before
  })
  const [, start] = /^ {4}CLUSTERDECK_FLEET_TOKEN="a long secret" (clusterdeck start .*)$/m.exec(PAGE) ?? []
  const root = tempFolder()
  const decks: Deck[] = []
  const runtimeFolders: string[] = []
  for (const name of NAMES) {
    // Each is alone on its machine.
    runtimeFolders.push(process.env.CLUSTERDECK_RUNTIME_DIR = tempFolder())
    const cwd = path.join(root, name)
    mkdirSync(cwd)
    writeRelease(cwd, 'v1')
    const words = wordsOf(start.replace('web-1', name).replace('nats://10.0.0.5:4222', nats.url)).slice(1)
    const deck = await startDeckHere(t, null, { workers: 1,
      flags: [...words, '--releases-root', root, '--fleet-labels', 'zone=a,disk=ssd'], cwd,
      dataDir: path.join(cwd, '.clusterdeck') })
    await deck.until({ ready: 1 })
    decks.push(deck)
  }
  const scene = { decks, cwd: path.join(root, 'web-1'), last: async () => (await decks[0].api('/fleet')).body.rollout }
  mkdirSync(path.join(scene.cwd, 'build'))
  writeRelease(path.join(scene.cwd, 'build'), 'pushed')
  await until(async () => (await decks[0].api('/fleet')).body.members.length === 3, 'three members')

  const lines = examples().filter(({ line }) => OF_FLEET.test(line))
  assert.ok(lines.length > 12, `${lines.length} examples`)
  for (const { from, line } of lines) {
    await t.test(`${line} (${from})`, async () => {
      const ready = await PREPARED.filter(([pattern]) => pattern.test(line)).reduce(
        async (text, [, prepare]) => prepare(scene, await text),
        Promise.resolve(line)
      )
      const { code, stderr } = await runCliHere(wordsOf(ready), { cwd: scene.cwd,
        env: { CLUSTERDECK_RUNTIME_DIR: runtimeFolders[0] } })
      assert.equal(code, 0, `${ready}: ${stderr}`)
      await settle(scene)
    })
  }
  assert.equal(await (await fetch(await decks[2].appUrl(), { headers: { connection: 'close' } })).text(), 'pushed')
})

/** What the page shows, but for the address and the folder. */
function settings (): string {
  const [block] = /^ {4}# nats\.conf\n(?: {4}.*\n)+/m.exec(PAGE) ?? []
  const [, authorization] = /^ {4}(authorization .*)$/m.exec(String(block)) ?? []
  assert.match(String(block), /jetstream \{[^}]*sync_interval: always/)
  return authorization
}

/** A rollout that waits after its first turn. */
async function slow ({ decks, last }: Scene) {
  await post(decks[1], '/fleet/rollout', { kind: 'restart', pauseMs: 60_000 })
  await until(async () => (await last())?.turns['web-1'].state === 'succeeded', 'the first turn')
}

/** What runs has to end before the next example. */
async function settle ({ decks, last }: Scene) {
  const rollout = await last()
  if (rollout && ['running', 'paused', 'held'].includes(rollout.state)) await post(decks[0], '/fleet/rollout/abort')
  await until(async () => !['running', 'paused', 'rolling-back'].includes(String((await last())?.state)), 'the end')
  for (const deck of decks) await deck.until({ ready: 1 })
}

async function post (deck: Deck, where: string, body?: object) {
  const { status, body: answer } = await deck.api(where, { method: 'POST', body: body && JSON.stringify(body) })
  assert.ok(status < 300, JSON.stringify(answer))
}
