import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { get } from '../support/asking.ts'
import { FIXTURES, startDeck, startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { rareOnly, rareTest } from '../support/rare.ts'

const run = promisify(execFile)

/** A preload whose path needs quotes. */
function placePreload () {
  const folder = path.join(tempFolder(), 'with "quotes" and spaces')
  mkdirSync(folder)
  const file = path.join(folder, 'metrics.cjs')
  copyFileSync(path.join(FIXTURES, 'opens-a-side-port.cjs'), file)
  return { file, quoted: `"${file.replaceAll('"', '\\"')}"` }
}

describe('what runs before an app', { concurrency: 2 }, () => {
  test('by NODE_OPTIONS: its server is shared by the workers, runs in no keeper and no master, and counts for no readiness of the app', async (t) => {
    const [sidePort, folder, preload] = [await freePort(), tempFolder(), placePreload()]
    const [seen, go] = [path.join(folder, 'seen'), path.join(folder, 'go')]
    const nodeOptions = `--max-http-header-size=20000 --require ${preload.quoted}`
    const deck = await startDeck(t, 'listens-when-told.js', {
      flags: ['--ready-path', '/health', '--start-first', 'all'],
      env: { NODE_OPTIONS: nodeOptions, SIDE_PORT: String(sidePort), SEEN: seen, GO: go }
    })
    await deck.untilStatus(
      ({ workers }) =>
        workers.length === 2 && workers.every(({ pid }) => readFileSync(seen, 'utf8').includes(`${pid}\n`)),
      'both workers to have loaded it'
    )
    assert.equal((await deck.status()).readyWorkers, 0, 'the app does not listen yet')
    writeFileSync(go, '')
    const { workers } = await deck.until({ ready: 2 })
    const pids = workers.map(({ pid }) => pid)
    assert.ok(pids.map((pid) => `side of ${pid}`).includes(await get(`http://127.0.0.1:${sidePort}`)))
    const loaded = readFileSync(seen, 'utf8').trim().split('\n').map(Number)
    assert.deepEqual(loaded.sort(), [deck.child.pid, ...pids].sort(), 'the keeper has begun anew since')
    assert.doesNotMatch(readFileSync(`/proc/${deck.child.pid}/environ`, 'utf8'), /^NODE_OPTIONS=.*metrics\.cjs/m)
    assert.equal((await deck.status()).app.addresses.length, 1, 'that of the app')

    const { own, thread, child } = JSON.parse(await deck.ask())
    for (const each of [own, thread, child]) assert.deepEqual(each, { execArgv: [], nodeOptions })
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    assert.match(await get(`http://127.0.0.1:${sidePort}`), /^side of \d+$/)
    const { body: { items } } = await deck.api('/events?type=unexpected')
    assert.deepEqual(items, [])
  })

  for (const [how, option, name] of [['--require', '--require', 'metrics.cjs'], ['--import', '--import',
    'metrics.mjs']] as const)
  {
    rareTest(`by ${how} of the configuration, before an app of CommonJS`, async (t) => {
      const [sidePort, folder] = [await freePort(), tempFolder()]
      const file = path.join(folder, name)
      writeFileSync(file, name.endsWith('.cjs')
        ? `require(${JSON.stringify(`${FIXTURES}opens-a-side-port.cjs`)})`
        : `await import(${JSON.stringify(`${FIXTURES}opens-a-side-port.cjs`)})`)
      const deck = await startDeckHere(t, 'serves-only-as-main-module.cjs', { flags: [`--exec-argv=${option} ${file}`],
        env: { SIDE_PORT: String(sidePort) } })
      const { app, workers } = await deck.until({ ready: 2 })
      assert.equal(app.addresses.length, 1, 'that of the app')
      assert.ok(workers.map(({ pid }) =>
        `side of ${pid}`
      ).includes(await get(`http://127.0.0.1:${sidePort}`)))
      assert.match(await deck.ask(), /argv/)
    })
  }

  for (const how of ['execArgv', 'NODE_OPTIONS']) {
    test(
      `by ${how}: what Yarn has written for Plug'n'Play, before any ES module, so that packages are read from their archives`,
      { skip: how === 'execArgv' && rareOnly },
      async (t) => {
        const [folder, port] = [tempFolder(), await freePort()]
        const pnp = path.join(folder, '.pnp.cjs')
        writeFileSync(pnp, `
        const fs = require('node:fs')
        const { readFileSync } = fs
        fs.readFileSync = (file, how) => {
          if (!String(file).endsWith('package.cjs')) return readFileSync(file, how)
          const text = "module.exports = 'of the archive'"
          return how ? text : Buffer.from(text)
        }`)
        writeFileSync(path.join(folder, 'package.cjs'), 'module.exports = \'of the disk\'')
        writeFileSync(path.join(folder, 'app.mjs'), `
        import { createServer } from 'node:http'
        import text from './package.cjs'
        if (process.env.PRINT) console.log(text)
        else createServer((request, response) => response.end(text)).listen(${port})`)
        const plain = await run(process.execPath, ['--require', pnp, 'app.mjs'], { cwd: folder,
          env: { ...process.env, PRINT: '1' } })
        const given = how === 'execArgv'
          ? { flags: [`--exec-argv=--require ${pnp}`] }
          : { env: { NODE_OPTIONS: `--no-deprecation --require "${pnp}"` } }
        const deck = await startReady(t, path.join(folder, 'app.mjs'), { workers: 1, ...given })
        assert.equal(`${await deck.ask()}\n`, plain.stdout, 'as plain Node has it')
      }
    )
  }
})
