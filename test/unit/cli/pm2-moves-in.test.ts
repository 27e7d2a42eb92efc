import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../../../server/config/config.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { tempFolder } from '../../support/folder.ts'

/**
 * What `pm2 jlist` of PM2 7.0.4 has said of seven apps: four of a file, with --env production, and three by hand, of
 * which one is stopped.
 */
const RECORDED = fileURLToPath(new URL('../../fixtures/pm2-jlist.json', import.meta.url))
const APP = fileURLToPath(new URL('../../fixtures/answers-with-pid.js', import.meta.url))

/** The folder in which they ran, and a PM2 that says the same. */
function openProject () {
  const cwd = tempFolder()
  for (const name of ['serve.js', 'cron.js', 'jobs/mailer.js']) cpSync(APP, path.join(cwd, name))
  const list = readFileSync(RECORDED, 'utf8').replaceAll('@project@', cwd)
  const bin = path.join(tempFolder(), 'bin')
  const home = path.join(bin, '.pm2')
  mkdirSync(home, { recursive: true })
  writeFileSync(path.join(home, 'pm2.pid'), String(process.pid))
  writeFileSync(path.join(bin, 'list'), JSON.stringify(JSON.parse(list)))
  writeFileSync(path.join(bin, 'pm2'), `#!/bin/sh\ncat '${bin}/list'\n`, { mode: 0o755 })
  return { cwd, env: { PM2_HOME: home, PATH: `${bin}:${process.env.PATH}` },
    processes: (JSON.parse(list) as { pm2_env: Process }[]).map(({ pm2_env }) => pm2_env) }
}

type Process = { name: string, pm_cwd: string, pm_exec_path: string, args?: string[], node_args: string[],
  env: Record<string, unknown> }

test('import --pm2 and up --detach leave the list of pm2 ls: names, counts, states, places, arguments and variables', async (t) => {
  const { cwd, env, processes } = openProject()
  assert.equal((await runCliHere(['import', '--pm2'], { cwd, env })).code, 0)
  const names = [...new Set(processes.map(({ name }) => name))]
  assert.deepEqual(names.toSorted(), ['api', 'hand', 'idle', 'mailer', 'nightly', 'once', 'web'])
  for (const name of names) {
    const ofApp = processes.filter((each) => each.name === name)
    const [
      { pm_cwd: folder, pm_exec_path: script, args = [], node_args: execArgv,
        env: { WHO, PORT, MODE, NODE_ENV, SECRET } }
    ] = ofApp
    const config = await loadConfig({ flags: { app: name }, env: {}, cwd, isAgain: true })
    assert.deepEqual([config.cwd, config.entry, config.args, config.execArgv, config.workers], [folder, script, args,
      execArgv, ofApp.length], name)
    assert.deepEqual(config.env,
      Object.fromEntries(Object.entries({ WHO, PORT, MODE, NODE_ENV, SECRET }).filter(([, value]) =>
        value !== undefined
      ).map(([key, value]) => [key, String(value)])), name)
  }
  const nightly = await loadConfig({ flags: { app: 'nightly' }, env: {}, cwd, isAgain: true })
  const [once, api] = await Promise.all(
    ['once', 'api'].map((app) => loadConfig({ flags: { app }, env: {}, cwd, isAgain: true }))
  )
  assert.deepEqual([nightly.restart.cron, once.restart.policy, api.recycle.maxRssBytes], ['0 3 * * *', 'never',
    300 * 1024 ** 2])

  const host = await startFakeHost(t)
  const { code, stdout, stderr } = await host.cli('up --detach', { cwd })
  assert.equal(code, 0, stderr)
  assert.match(stderr, /^idle {4}\| stays stopped \(clusterdeck start idle\)$/m)
  assert.match(stdout, /^idle +stopped +-/m)
  assert.deepEqual(names.map((name) => [name, host.view(String(name))?.state]),
    names.map((name) => [name, name === 'idle' ? 'stopped' : 'running']))
  // Once somebody has started it, another up leaves it so; and whoever names it, wants it.
  host.put('idle', { state: 'running' })
  assert.match((await host.cli('up -d', { cwd })).stderr, /^idle {4}\| already runs$/m)
  host.put('idle', { state: 'stopped' })
  assert.match((await host.cli('up idle -d', { cwd })).stderr, /^idle \| is ready$/m)
})

test('a stopped app alone keeps its place below apps, so that it stays stopped', async () => {
  const { cwd, env, processes } = openProject()
  const idle = processes.find(({ name }) => name === 'idle')
  writeFileSync(path.join(String(env.PM2_HOME), '..', 'list'), JSON.stringify([{ name: 'idle', pm2_env: idle }]))
  const { stdout } = await runCliHere(['import', '--pm2'], { cwd, env })
  assert.match(stdout, /start it by: clusterdeck up --detach\n$/)
  assert.match(readFileSync(path.join(cwd, 'clusterdeck.config.mjs'), 'utf8'),
    / {2}apps: \{\n {4}idle: \{\n {6}autostart: false,\n/)
})

test('autostart is true or false', async () => {
  const cwd = tempFolder()
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'),
    JSON.stringify({ apps: { shop: { entry: 'shop.js', autostart: 'no' } } }))
  assert.match((await runCliHere(['up', '-d'], { cwd })).stderr,
    /^clusterdeck: apps\.shop\.autostart in .*: expected true or false, received "no"\n$/)
})
