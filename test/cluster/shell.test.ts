import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { CLI } from '../support/deck.ts'
import { readRecords } from '../support/records.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { untilFound } from '../support/until.ts'

const skip = process.platform !== 'linux' && 'it reads proc(5)'
/** Of the shell that orders an app; the host has others. */
const SHELL = 'umask 027; ulimit -S -c 8; ulimit -S -n 600; "$@"; exit'
const REPORT = '(umask; ulimit -S -c; ulimit -S -n)'
const SET = ['0027', '8', '600']

describe('umask and soft limits of the shell', { skip }, () => {
  test('stay with the app that it has ordered, over the death of the master: for workers of Node, other programs and jobs', async (t) => {
    const host = await startHost(t, { env: { SHLVL: '7' } })
    const folder = tempFolder()
    writeFileSync(path.join(folder, 'app.js'),
      `require('node:child_process').execSync(${
        JSON.stringify(`${REPORT} > node-$PPID`)
      }); require('node:http').createServer(() => {}).listen(0)`)
    writeFileSync(path.join(folder, 'program'), `#!/bin/sh\n${REPORT} > program-$$\nexec sleep 1000\n`, { mode: 0o755 })
    writeFileSync(path.join(folder, 'clusterdeck.config.mjs'),
      `export default { workers: 1, jobs: { report: { command: ${JSON.stringify(`${REPORT} > job-$$`)} } } }`)
    const env = { ...process.env, CLUSTERDECK_HOST_DIR: host.folder, SSH_CONNECTION: '10.0.0.1 22', A_TOKEN: 'told' }
    const order = async (...words: string[]) => {
      const command = execFile('sh', ['-c', SHELL, 'sh', process.execPath, CLI, 'start', '--detach', ...words], {
        cwd: folder,
        env
      })
      const [errors, [code]] = await Promise.all([command.stderr?.toArray() ?? [], once(command, 'exit')])
      assert.equal(code, 0, errors.join(''))
    }
    await order('app.js', '--name', 'node')
    await order('./program', '--name', 'program', '--data-dir', '.program', '--ready-signal', 'online')
    const [{ order: { env: kept } }] = readRecords(host.folder)
    assert.deepEqual([kept.A_TOKEN, kept.SSH_CONNECTION, kept.SHLVL], ['told', undefined, undefined])
    await host.post('/apps/node/jobs/report/runs')
    // Node raises what it may have open.
    const first = [await report(folder, 'node'), await report(folder, 'program'), await report(folder, 'job')]
    assert.deepEqual(first.map(({ told }) => told.slice(0, 2)), [SET, SET, SET].map((each) => each.slice(0, 2)))
    assert.deepEqual([first[1].told, first[2].told], [SET, SET])

    process.kill(host.about.pid, 'SIGKILL')
    await host.untilNext(host.about.pid)
    assert.deepEqual((await report(folder, 'node', first[0].name)).told.slice(0, 2), SET.slice(0, 2))
    assert.deepEqual((await report(folder, 'program', first[1].name)).told, SET)
  })

  test('are those of a deck in the foreground, too', async (t) => {
    const folder = tempFolder()
    writeFileSync(path.join(folder, 'program'), `#!/bin/sh\n${REPORT} > program-$$\nexec sleep 1000\n`, { mode: 0o755 })
    const command = execFile('sh', ['-c', SHELL, 'sh', process.execPath, CLI, 'start', './program', '--workers', '1',
      '--ready-signal', 'online', '--admin-port', '0'], { cwd: folder })
    const exited = once(command, 'exit')
    const file = path.join(folder, '.clusterdeck', 'master.json')
    const { pid, keeper } = await untilFound(() => existsSync(file) && JSON.parse(readFileSync(file, 'utf8')),
      'the master')
    t.after(async () => {
      process.kill(keeper.pid, 'SIGTERM')
      await exited
    })
    const first = await report(folder, 'program')
    assert.deepEqual(first.told, SET)
    process.kill(pid, 'SIGKILL')
    assert.deepEqual((await report(folder, 'program', first.name)).told, SET)
  })
})

/** `before`: another one */
async function report (folder: string, kind: string, before?: string): Promise<{ name: string, told: string[] }> {
  return await untilFound(() => {
    const name = readdirSync(folder).find((each) => each.startsWith(`${kind}-`) && each !== before)
    const told = name === undefined ? [] : readFileSync(path.join(folder, name), 'utf8').trim().split('\n')
    return name !== undefined && told.length === 3 ? { name, told } : null
  }, `the report of a ${kind}`)
}
