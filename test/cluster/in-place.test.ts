import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { SQLITE } from '../../db/sqlite.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startDeck, type TestOwner } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { app, releasesOf, throwsOnce, untilListed } from '../support/deploys.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import type { Problem } from '../support/answers.ts'
import type { DeckClient } from '../support/deck-client.ts'

const QUICK = ['--drain-idle-grace-ms', '100', '--restart-min-delay-ms', '1', '--restart-intensity-restarts', '2']

/** `how`: an app in one folder, whose files each deploy replaces */
async function deployedInPlace (t: TestOwner,
  { workers = 2, start = startDeckHere }: { workers?: number, start?: typeof startDeckHere | typeof startDeck } = {})
{
  const entry = path.join(tempFolder(), 'app.mjs')
  const put = (source: string) => writeFileSync(entry, source)
  put(app('response.end(\'one\')'))
  const deck = await start(t, entry, { workers, flags: QUICK })
  await deck.until({ ready: workers })
  return { deck, entry, put, cli: (...args: string[]) => runCliHere([...args, '--data-dir', deck.folder]) }
}

/** @returns what is answered, each answer once */
async function answers (deck: DeckClient): Promise<string[]> {
  const texts = await Promise.all(Array.from({ length: 16 }, () => deck.ask()))
  return [...new Set(texts)].sort()
}

/** Nothing may plainly claim that a release has come back whose files are others now. */
async function claims (deck: DeckClient) {
  const events = await deck.history('limit=500')
  return events.filter(({ type, message, detail }) => {
    return (type === 'rollout.rolled-back' || (type === 'rollout.succeeded' && detail?.kind === 'rollback')) &&
      !message?.includes('may not be what it was')
  })
}

const READS_BUILD = `import { existsSync, readFileSync } from 'node:fs'
const build = readFileSync(new URL('.next/BUILD_ID', import.meta.url), 'utf8')`

/** `how`: an app that reads by itself what a build has made, which no deploy of code can be told by */
async function deployedBuild (t: TestOwner, { atLoad = '', workers = 2 }: { atLoad?: string, workers?: number } = {}) {
  const folder = tempFolder()
  const entry = path.join(folder, 'app.mjs')
  const build = (id: string) => {
    mkdirSync(path.join(folder, '.next'), { recursive: true })
    writeFileSync(path.join(folder, '.next', 'BUILD_ID'), id)
  }
  build('one')
  writeFileSync(entry, app('response.end(build)', `${READS_BUILD}\n${atLoad}`))
  const deck = await startReadyHere(t, entry, { workers, flags: QUICK })
  await untilListed(deck, 'r1')
  return { deck, folder, build, cli: (...args: string[]) => runCliHere([...args, '--data-dir', deck.folder]) }
}

const BUILD_CAVEAT = 'r1 may not be what it was: 1 file of its folder has changed since its deploy: .next/BUILD_ID'

describe('an app that is deployed in place', { concurrency: true }, () => {
  test('a rollback is refused with what to do instead, by command line, API and page, and changes nothing', async (t) => {
    const { deck, entry, put, cli } = await deployedInPlace(t)
    put(app('response.end(\'two\')'))
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const { code, stderr } = await cli('rollback', '--wait')
    assert.equal(code, 4)
    assert.ok(
      stderr.includes(
        `r1 cannot come back: files of r1 changed after its deploy: ${entry}. To run its code again, put the files back and deploy.`
      ),
      stderr
    )
    const { status, body } = await deck.api<Problem>('/rollouts', { method: 'POST',
      body: '{"kind":"rollback","release":"r1"}' })
    assert.deepEqual([status, body.code, body.release], [409, 'drifted', 'r1'])
    const { body: { items: [second, first] } } = await deck.api('/releases')
    assert.deepEqual([second.changedInPlace, first.changedInPlace?.files, first.changedInPlace?.count], [null, [entry],
      1])
    assert.ok(Math.abs(Date.parse(String(first.changedInPlace?.since)) - Date.parse(second.createdAt)) < 60_000)
    assert.deepEqual([await answers(deck), await claims(deck)], [['two'], []])

    put(app('response.end(\'one\')'))
    assert.equal((await deck.rollout({ kind: 'rollback', release: 'r1' })).state, 'succeeded', 'the files are back')
    assert.deepEqual(await answers(deck), ['one'])
  })

  rareTest('a deploy that fails midway leaves the workers of the old code alone, and says why it cannot go back',
    async (t) => {
      const { deck, put } = await deployedInPlace(t, { workers: 2 })
      put(
        app('response.end(\'two\')', 'if (process.env.CLUSTERDECK_SLOT !== \'1\') throw new Error(\'no second one\')')
      )
      const { state, reason } = await deck.rollout('deploy')
      assert.equal(state, 'failed')
      assert.match(String(reason), /r1 cannot come back: files of r1 changed after its deploy/)
      assert.deepEqual(await answers(deck), ['one', 'two'])
      assert.deepEqual((await releasesOf(deck)).sort(), ['r1', 'r2'])
      assert.deepEqual([await claims(deck), await deck.history('type=rollout.rolling-back')], [[], []])
    })

  rareTest('the guard does not put the same files into a crash loop once more, and says so', async (t) => {
    const { deck, put } = await deployedInPlace(t, { workers: 1 })
    const fault = path.join(tempFolder(), 'fault')
    put(app('response.end(\'two\')', throwsOnce(fault)))
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    writeFileSync(fault, '')
    const refused = await deck.untilEvent('rollback.refused')
    assert.deepEqual([refused.actor, refused.release], ['guard', 'r2'])
    assert.match(String(refused.message),
      /^r2 kept crashing after rollout 1, but r1 cannot come back: files of r1 changed after its deploy/)
    const { notices } = await deck.status()
    assert.deepEqual(notices.map(({ kind }) => kind), ['rollout-failed'])
    assert.deepEqual(await claims(deck), [])
  })
})

describe('an app in place that reads files by itself', { concurrency: true }, () => {
  rareTest('a deploy of these alone that fails midway goes back, and says what has not come back', async (t) => {
    const fault = path.join(tempFolder(), 'fault')
    const { deck, build, cli } = await deployedBuild(t, {
      atLoad: `if (build === 'two' && process.env.CLUSTERDECK_SLOT !== '1') {
  while (!existsSync(${JSON.stringify(fault)})) await new Promise((resolve) => setTimeout(resolve, 20))
  throw new Error('no second one')
}`
    })
    build('two')
    const ended = deck.rollout('deploy')
    await untilListed(deck, 'r2')
    writeFileSync(fault, '')
    const { state, reason } = await ended
    assert.equal(state, 'rolled-back')
    assert.ok(reason?.endsWith(`; ${BUILD_CAVEAT}`), String(reason))
    assert.deepEqual([await claims(deck), await releasesOf(deck), await answers(deck)], [[], ['r1'], ['one', 'two']])
    assert.match((await cli('status')).stdout, /r1 \+ changes/)
  })

  rareTest('a rollback says what it does not bring back, and the guard does', async (t) => {
    const fault = path.join(tempFolder(), 'fault')
    const { deck, build, cli } = await deployedBuild(t, { workers: 1,
      atLoad: throwsOnce(fault, 'process.env.CLUSTERDECK_RELEASE === \'r3\'') })
    build('two')
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    await untilListed(deck, 'r2')
    const { body: { items: [, first] } } = await deck.api('/releases')
    assert.deepEqual([first.changedInPlace?.kind, first.changedInPlace?.files, first.changedInPlace?.message], [
      'folder',
      ['.next/BUILD_ID'],
      BUILD_CAVEAT
    ])
    const { code, stderr } = await cli('rollback', 'r1', '--wait')
    assert.deepEqual([code, stderr.includes(`warning: ${BUILD_CAVEAT}`)], [0, true], stderr)

    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    await untilListed(deck, 'r3')
    writeFileSync(fault, '')
    const back = await deck.untilEvent('rollout.succeeded', { actor: 'guard' })
    assert.match(String(back.message), /^r3 kept crashing after rollout 3; r1 may not be what it was: /)
    assert.deepEqual(await claims(deck), [])
  })

  rareTest('what it writes into its folder hinders no rollback, and is not told of where it is listed as its own',
    async (t) => {
      const folder = tempFolder()
      const entry = path.join(folder, 'app.mjs')
      const sqlite = pathToFileURL(createRequire(import.meta.url).resolve(SQLITE)).href
      writeFileSync(entry,
        app('response.end(String(db.prepare(\'INSERT INTO visits DEFAULT VALUES\').run().lastInsertRowid))',
          `import Database from ${JSON.stringify(sqlite)}
const db = new Database(new URL('app.db', import.meta.url).pathname)
db.exec('CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY)')`))
      for (const [flags, warnings] of [[[], [
        'r1 may not be what it was: 1 file of its folder has changed since its deploy: app.db'
      ]], [['--releases-shared', 'app.db'], []]] as [string[], string[]][]) {
        const deck = await startReadyHere(t, entry, { workers: 1, flags: [...QUICK, ...flags] })
        await untilListed(deck, 'r1')
        await answers(deck)
        assert.equal((await deck.rollout('deploy')).state, 'succeeded')
        await untilListed(deck, 'r2')
        const { state, warnings: told } = await deck.rollout({ kind: 'rollback', release: 'r1' })
        assert.deepEqual([state, told], ['succeeded', warnings])
        await deck.stop()
      }
    })
})
