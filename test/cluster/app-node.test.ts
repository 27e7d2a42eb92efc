import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { isProgram } from '../../server/run-on.js'
import { isOldNode } from '../../server/system/app-node.ts'
import { get } from '../support/asking.ts'
import { startDeck, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const APP = `const { createServer } = require('http')
createServer((request, response) => response.end(process.version)).listen(process.env.PORT)
`
const ABI_ERROR =
  'throw new Error("The module \'/srv/node_modules/sharp/build/sharp.node\'\\nwas compiled against a different Node.js version using\\nNODE_MODULE_VERSION 115. This version of Node.js requires\\nNODE_MODULE_VERSION 137. Please try re-compiling")'

/**
 * Those of this machine, each of another version: the one of the tests, that of PATH, and those that TEST_NODES names,
 * by colons:
 * `TEST_NODES=/opt/16/bin/node:/opt/18/bin/node npm run test:all`.
 */
const NODES = [process.execPath, ...(process.env.TEST_NODES ?? '').split(':'),
  ...(process.env.PATH ?? '').split(':').map((folder) => path.join(folder, 'node'))].filter(isProgram).map((file) => ({
    file,
    version: execFileSync(file, ['--version'], { encoding: 'utf8' }).trim().slice(1)
  })).filter(({ version }, index, all) =>
    Number.parseInt(version, 10) >= 14 && all.findIndex((other) => other.version === version) === index
  )

/** @returns a folder as nvm has it, with these */
function nvmFolder (): string {
  const folder = tempFolder()
  for (const { file, version } of NODES) {
    mkdirSync(path.join(folder, 'versions/node', `v${version}`), { recursive: true })
    symlinkSync(path.dirname(file), path.join(folder, 'versions/node', `v${version}`, 'bin'))
  }
  return folder
}

/** `text`: of its app.js. Returns its folder. */
function appFolder (text: string, nvmrc?: string): string {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.js'), text)
  if (nvmrc !== undefined) writeFileSync(path.join(folder, '.nvmrc'), nvmrc)
  return folder
}

describe('the Node of an app', () => {
  rareTest(
    'apps on each Node of this machine lose no request by restarts, deploys that change the Node, kills of workers and a kill of the master',
    async (t) => {
      if (withoutOtherPrograms) return t.skip(withoutOtherPrograms)
      const host = await startHost(t)
      const NVM_DIR = nvmFolder()
      const apps = await Promise.all(NODES.map(async ({ version }) => {
        const [name, port, cwd] = [`on-${Number.parseInt(version, 10)}`, await freePort(), appFolder(APP, version)]
        await host.add({ name, cwd, flags: { entry: 'app.js', workers: '2' },
          env: { PATH: process.env.PATH, PORT: String(port), NVM_DIR } })
        await host.untilApp(name, ({ state, workers }) => state === 'running' && workers?.ready === 2)
        const url = `http://127.0.0.1:${port}/`
        return { name, cwd, url, version, kept: hammer(t, url, { connections: 8 }),
          fresh: openFreshConnections(t, url, { perSecond: 30 }) }
      }))
      const rollOut = async (name: string, body: object) => {
        const { id } = await host.request(`/apps/${name}/rollouts`, { method: 'POST', body })
        for (;;) {
          const { state, reason } = await host.request(`/apps/${name}/rollouts/${id}`)
          if (['succeeded', 'failed', 'rolled-back'].includes(state))
            return assert.equal(state, 'succeeded', `${name}: ${reason}`)
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }
      for (const { name, url, version } of apps) {
        assert.equal(await get(url), `v${version}`)
        await rollOut(name, { kind: 'restart' })
      }
      for (const { name, url, cwd, version } of apps) {
        const isOld = isOldNode(version)
        for (const next of NODES.filter((node) => isOldNode(node.version) === isOld && node.version !== version)) {
          writeFileSync(path.join(cwd, '.nvmrc'), next.version)
          await rollOut(name, { kind: 'deploy' })
          assert.equal(await get(url), `v${next.version}`)
          const { release: { node, changed } } = await host.request(`/apps/${name}/status`)
          assert.deepEqual([node?.version, node?.by, changed?.node], [next.version, '.nvmrc', true])
        }
        const other = NODES.find((node) => isOldNode(node.version) !== isOld)
        if (!other) continue
        writeFileSync(path.join(cwd, '.nvmrc'), other.version)
        await assert.rejects(host.post(`/apps/${name}/rollouts`, { kind: 'deploy' }), { code: 'invalid-config' })
      }
      for (const { name, kept, url, fresh } of apps) {
        // A kept connection of a process that is killed may have a request under way.
        await kept.checkNoneLost()
        const { workers } = await host.request(`/apps/${name}/status`)
        await fresh.whenIdle(() => process.kill(present(workers[0].pid), 'SIGKILL'))
        await host.untilApp(name, ({ state, workers }) => state === 'running' && workers?.ready === 2)
        assert.match(await get(url), /^v/)
      }
      const again = apps.map(({ url }) => hammer(t, url, { connections: 8 }))
      process.kill(host.about.pid, 'SIGKILL')
      await host.untilNext(host.about.pid)
      for (const { name } of apps)
        await host.untilApp(name, ({ state, workers }) => state === 'running' && workers?.ready === 2)
      for (const [index, { name, fresh }] of apps.entries()) {
        const [kept, { total, failures }] = [await again[index].stop(), await fresh.stop()]
        t.diagnostic(`${name}: ${total} fresh connections, ${kept.total} requests over kept ones at the end`)
        assert.deepEqual([...kept.failures, ...failures], [], name)
      }
    }
  )

  test('a deploy takes the Node that .nvmrc asks for by then, a rollback brings the one before back, and PATH and the next master have the same', async (t) => {
    const [own, other = own] = NODES.filter(({ version }) => !isOldNode(version))
    const folder = appFolder(
      'require(\'http\').createServer((request, response) => response.end(process.version + \' \' + require(\'child_process\').execSync(\'node --version\'))).listen(0)',
      `v${other.version} # ours\n`
    )
    const deck = await startReady(t, path.join(folder, 'app.js'), { workers: 1, flags: ['--releases-mode', 'folder'],
      env: { NVM_DIR: nvmFolder(), PATH: '/usr/bin:/bin' } })
    const ask = async () => (await get(await deck.appUrl())).trim()
    assert.equal(await ask(), `v${other.version} v${other.version}`)
    writeFileSync(path.join(folder, '.nvmrc'), '99\n')
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    assert.equal(await ask(), `v${process.versions.node} v${process.versions.node}`)
    const { release } = await deck.status()
    assert.deepEqual(release.node, { file: process.execPath, version: process.versions.node, by: 'command',
      instead: `${
        path.join(folder, '.nvmrc')
      } asks for Node 99, which is not installed for this user; the app runs on Node ${process.versions.node}` })
    assert.equal(release.changed?.node, own !== other)
    await deck.rolloutEnd((await deck.post('/rollouts', { kind: 'rollback' })).body)
    await deck.loseMaster()
    await deck.until({ ready: 1 })
    assert.equal(await ask(), `v${other.version} v${other.version}`)
    const run =
      (await deck.api('/jobs/runs', { method: 'POST', body: JSON.stringify({ command: ['node', '--version'] }),
        headers: { 'content-type': 'application/json' } })).body
    await until(async () => (await deck.api(`/jobs/runs/${run.id}`)).body.state === 'succeeded',
      'the end of the command')
    assert.match(String((await deck.api(`/jobs/runs/${run.id}`)).body.output),
      new RegExp(`^v${other.version.replaceAll('.', '\\.')}$`, 'm'))
  })

  test('a worker that cannot load a native module of another Node says which has built it, which runs it, and what to do', async (t) => {
    const deck = await startDeck(t, path.join(appFolder(ABI_ERROR), 'app.js'), { workers: 1 })
    const { message } = await deck.untilEvent('worker.exited')
    assert.match(String(message),
      new RegExp(
        `sharp was built by Node 20, and Node ${process.versions.node} runs it: build it again by PATH=.*npm rebuild sharp, or set the option node to 20`
      ))
  })
})
