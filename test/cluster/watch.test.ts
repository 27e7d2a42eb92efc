import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startReadyHere } from '../support/deck-here.ts'
import { above } from '../support/event-log.ts'
import { tempFolder } from '../support/folder.ts'
import { createSources } from '../support/sources.ts'

test('--watch rolls on a change of any loaded file, and a release that does not start never replaces one that serves', async (t) => {
  const { app, write } = createSources()
  const deck = await startReadyHere(t, app, { flags: ['--watch', '--drain-idle-grace-ms', '50'] })
  const answer = async () => JSON.parse(await deck.ask())
  let last = 0
  /** `outcome`: of the next rollout */
  const untilRolled = async (outcome: string) => {
    const event = await deck.untilEvent(['rollout.succeeded', 'rollout.failed'], { rollout: above(last) })
    assert.deepEqual([event.type, event.actor], [`rollout.${outcome}`, 'watch'], event.message ?? undefined)
    last = Number(event.rollout)
  }

  write('nested', 2)
  await untilRolled('succeeded')
  assert.deepEqual(await answer(), { nested: 2, required: 1 })

  write('required', 2)
  await untilRolled('succeeded')
  assert.deepEqual(await answer(), { nested: 2, required: 2 })

  const pids = (await deck.status()).workers.map(({ pid }) => pid)
  write('nested', '= 3')
  await untilRolled('failed')
  assert.deepEqual((await deck.status()).workers.map(({ pid }) => pid), pids)
  assert.deepEqual(await answer(), { nested: 2, required: 2 })
  assert.match(deck.output.stdout, /lib\/nested\.js:1\n {2}export const nested = = 3\n.*\n {2}SyntaxError/)

  const file = write('nested', 3)
  await untilRolled('succeeded')
  rmSync(file)
  await untilRolled('failed')
  write('nested', 4)
  await untilRolled('succeeded')
  assert.deepEqual(await answer(), { nested: 4, required: 2 })
})

test('--watch sees a link that leads elsewhere, to the app or to one of its files, envFile, --env-file and the config file', async (t) => {
  const folder = tempFolder()
  const at = (...names: string[]) => path.join(folder, ...names)
  /** Replaces a link in one step, as tools of deploys do. */
  const link = (target: string, name: string) => {
    symlinkSync(target, at(`${name}.new`))
    renameSync(at(`${name}.new`), at(name))
  }
  const config = (env: object) =>
    writeFileSync(at('clusterdeck.config.json'),
      JSON.stringify({ entry: 'current/app.cjs', workers: 1, watch: true, envFile: 'own.env',
        execArgv: ['--env-file', 'node.env'], env, drain: { idleGraceMs: 50 } }))
  for (const name of ['one', 'two']) {
    mkdirSync(at(name))
    writeFileSync(at(name, 'app.cjs'),
      `const { OWN, OF_NODE, OF_CONFIG } = process.env; const answer = ['${name}', require('./part.cjs'), OWN, OF_NODE, OF_CONFIG].join(' '); require('http').createServer((_, response) => response.end(answer)).listen(0)`)
    writeFileSync(at(`part-${name}.cjs`), `module.exports = 'part-${name}'`)
    symlinkSync('../part-one.cjs', at(name, 'part.cjs'))
  }
  writeFileSync(at('env-1'), 'OWN=1')
  writeFileSync(at('node.env'), 'OF_NODE=1')
  link('env-1', 'own.env')
  link('one', 'current')
  config({})
  const deck = await startReadyHere(t, null, { workers: 1, cwd: folder })
  assert.equal(await deck.ask(), 'one part-one 1 1 ')
  let last = 0
  for (const [change, becomes] of [[() => writeFileSync(at('env-1'), 'OWN=2'), 'one part-one 2 1 '], [() => {
    writeFileSync(at('env-2'), 'OWN=3')
    link('env-2', 'own.env')
  }, 'one part-one 3 1 '], [() => link('../part-two.cjs', 'one/part.cjs'), 'one part-two 3 1 '], [
    () => link('two', 'current'),
    'two part-one 3 1 '
  ], [() => config({ OF_CONFIG: 'new' }), 'two part-one 3 1 new'], [() => writeFileSync(at('node.env'), 'OF_NODE=4'),
    'two part-one 3 4 new']] as [() => void, string][])
  {
    change()
    const event = await deck.untilEvent(['rollout.succeeded', 'rollout.failed'], { rollout: above(last) })
    assert.deepEqual([event.type, await deck.ask()], ['rollout.succeeded', becomes], event.message ?? undefined)
    last = Number(event.rollout)
  }
})
