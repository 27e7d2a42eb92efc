import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { hostAppsHere } from '../support/apps-here.ts'
import { tempFolder } from '../support/folder.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { untilFound } from '../support/until.ts'
import { setVariables } from '../support/variables.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/** What the process of the host has, and the shell of the app has not. */
const OF_HOST = 'ONLY_THE_HOST_HAS_IT'
const OF_APP = 'ONLY_THE_APP_HAS_IT'
/** Answers with its variables: those that it sees, and those that it was born with. */
const TELLS_VARIABLES = `
  const { readFileSync } = require('node:fs')
  const born = Object.fromEntries(readFileSync('/proc/self/environ', 'utf8').split('\\0').filter(Boolean).map((each) => each.split(/=(.*)/s, 2)))
  require('node:http').createServer((_, response) => response.end(JSON.stringify({ pid: process.pid, execArgv: process.execArgv, env: process.env, born }))).listen(0)
`
/** A program that writes its variables into the file that it is called with. */
const NOTES_VARIABLES = `#!/bin/sh
env > "$1"
`
/** A git of the app's own. */
const TELLS_COMMIT = `#!/bin/sh
case "$*" in *rev-parse*) printf '%s\\n%s\\n' 0123456789012345678901234567890123456789 "of-its-own";; esac
`

setVariables({ [OF_HOST]: 'host', SHARED: 'of the host' })

/**
 * A folder with programs, and the variables of a shell that is another one than that of this process. `files`: by path.
 */
function shell (files: Record<string, string>, more: Record<string, string> = {}) {
  const folder = tempFolder()
  mkdirSync(path.join(folder, 'bin'))
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text, { mode: 0o755 })
  return { folder,
    env: { PATH: `${path.join(folder, 'bin')}${path.delimiter}${process.env.PATH}`, [OF_APP]: 'app',
      SHARED: 'of the app', ...more } as Record<string, string> }
}

/** An app of a host in this process, ordered from that shell. */
async function start (t: TestContext, { folder, env }: ReturnType<typeof shell>, flags: Record<string, string> = {}) {
  const apps = hostAppsHere(t)
  await apps.add({ name: 'own', cwd: folder, env, dependsOn: [],
    flags: { workers: '1', logsMirror: 'off', drainIdleGraceMs: '0', ...flags } }, { actor: 'test' })
  const { addresses: [url], entry } = await apps.until('own',
    ({ state, workers }) => state === 'running' && workers?.ready === 1)
  const { deck, history } = present(apps.opened('own'))
  return { apps, url, entry, deck,
    untilEvent: (isIt: (event: DeckEvent) => unknown) =>
      untilFound(() => history.page({ limit: 200 }).items.findLast(isIt), () => `an event: ${apps.said.join('\n')}`) }
}

type App = Awaited<ReturnType<typeof start>>
type Variables = Record<string, string | undefined>

async function ask ({ url }: App) {
  return await (await fetch(url, { headers: { connection: 'close' } })).json() as { pid: number, execArgv: string[],
    env: Variables, born: Variables }
}

async function deploy ({ deck, untilEvent }: App) {
  const { lastId } = deck.events
  await deck.deploy({ actor: 'test' })
  const { type, release } = await untilEvent(({ type, id }) =>
    /^rollout\.(succeeded|failed|rolled-back)$/.test(type) && id > lastId
  )
  assert.equal(type, 'rollout.succeeded')
  return deck.releases.get(String(release))
}

function assertOwn (variables: Variables) {
  assert.deepEqual([variables[OF_APP], variables.SHARED, variables[OF_HOST]], ['app', 'of the app', undefined])
}

function readNoted (file: string) {
  return Object.fromEntries(
    readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => line.split(/=(.*)/s, 2))
  )
}

describe('an app in a process with other variables', () => {
  test('gives its workers its own: at the start, to one that has stood by, and after a deploy', async (t) => {
    const app = await start(t, shell({ 'app.js': TELLS_VARIABLES }), { entry: 'app.js', standby: '1' })
    const first = await ask(app)
    for (const each of [first.env, first.born]) assertOwn(each)
    const { worker } = await app.untilEvent(({ type }) => type === 'worker.standby')
    process.kill(first.pid, 'SIGKILL')
    await app.untilEvent((event) => event.type === 'worker.ready' && event.worker === worker)
    const promoted = await ask(app)
    for (const each of [promoted.env, promoted.born]) assertOwn(each)
    assert.equal(promoted.env.CLUSTERDECK_SLOT, '1')
    await deploy(app)
    const later = await ask(app)
    for (const each of [later.env, later.born]) assertOwn(each)
    assert.equal(later.env.CLUSTERDECK_RELEASE, 'r2')
    assert.equal(process.env[OF_APP], undefined)
  })

  test('has its program, its hooks and its git by its own PATH, and these its variables', async (t) => {
    const own = shell({ 'bin/serves-it': `#!/usr/bin/env node\n${TELLS_VARIABLES}`, 'bin/notes-it': NOTES_VARIABLES,
      'bin/git': TELLS_COMMIT, '.git': 'what a checkout has',
      'clusterdeck.config.json': JSON.stringify({ entry: 'serves-it',
        hooks: { beforeDeploy: { command: ['notes-it', 'notes'] } } }) })
    const app = await start(t, own)
    assert.equal(app.entry, path.join(own.folder, 'bin', 'serves-it'))
    const { git } = await deploy(app)
    assert.equal(git?.branch, 'of-its-own')
    assertOwn(readNoted(path.join(own.folder, 'notes')))
  })

  rareTest('tells by them, and not by those of the process, what a deploy has changed', async (t) => {
    const own = shell({ 'app.js': TELLS_VARIABLES })
    const app = await start(t, own, { entry: 'app.js' })
    t.after(() => {
      delete process.env.IT_CAME_LATER
    })
    process.env.IT_CAME_LATER = 'in the process'
    assert.deepEqual((await deploy(app)).changed?.environment, [])
    await app.apps.changeVariables('own', { ...own.env, SHARED: 'of the app, changed' }, { isDry: false })
    assert.deepEqual((await deploy(app)).changed?.environment, ['SHARED'])
    assert.equal((await ask(app)).env.SHARED, 'of the app, changed')
  })

  rareTest('has a configuration that runs with them and in its folder, at the start as at a deploy', async (t) => {
    const own = shell({ 'app.js': TELLS_VARIABLES, 'word.txt': 'first', 'clusterdeck.config.mjs': `
        import { readFileSync } from 'node:fs'
        globalThis.count = (globalThis.count ?? 0) + 1
        export default { entry: 'app.js', env: { TOLD: [process.cwd() === import.meta.dirname, process.env.${OF_APP}, process.env.${OF_HOST}, readFileSync('word.txt'), globalThis.count].join() } }
      ` })
    const app = await start(t, own)
    assert.equal((await ask(app)).env.TOLD, 'true,app,,first,1')
    writeFileSync(path.join(own.folder, 'word.txt'), 'second')
    await deploy(app)
    assert.equal((await ask(app)).env.TOLD, 'true,app,,second,1')
    assert.equal(Reflect.get(globalThis, 'count'), undefined)
  })

  rareTest('has a port for the inspector of each worker where its own NODE_OPTIONS ask for one', async (t) => {
    const app = await start(t, shell({ 'app.js': TELLS_VARIABLES }, { NODE_OPTIONS: '--inspect=127.0.0.1:0' }), {
      entry: 'app.js'
    })
    assert.ok((await ask(app)).execArgv.includes('--inspect-port=0'))
  })
})
