import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../support/until.ts'

const PEERS = new URL('../bench/compare/peers.ts', import.meta.url)
const FOLDER = new URL('../support/folder.ts', import.meta.url)
const PORTS = new URL('../support/ports.ts', import.meta.url)

/** Starts node:cluster with two workers, in a session of its own, and tells what is to be gone after its end. */
const BENCH = `
  import { ALL } from '${PEERS}'
  import { tempFolder } from '${FOLDER}'
  import { freePort } from '${PORTS}'
  const running = await ALL.shared.start(2, await freePort())
  process.send({ pids: [...running.managers(), ...await running.workers()], folder: tempFolder() })
  process.on('message', () => { throw new Error('it fails') })
`

for (const [how, code, end] of [['a signal, which comes twice from a terminal', 130, (bench) => {
  for (let count = 0; count < 2; count++) bench.kill('SIGINT')
}], ['an error', 1, (bench) => bench.send('fail')]] as [string, number, (bench: ChildProcess) => void][]) {
  test(`a comparison that is ended by ${how}, ends what it has started, and removes its folders`, async (t) => {
    // In it node:test would take errors for those of a test.
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
    const bench = spawn(process.execPath, ['--input-type=module', '--eval', BENCH], { env,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    t.after(() => bench.kill('SIGKILL'))
    const [{ pids, folder }] = await once(bench, 'message')
    t.after(() => pids.filter(isAlive).forEach((pid: number) => process.kill(pid, 'SIGKILL')))
    assert.equal(pids.filter(isAlive).length, 3)
    end(bench)
    assert.deepEqual(await once(bench, 'exit'), [code, null])
    await until(() => !pids.some(isAlive), 'the end of all that it has started')
    assert.equal(existsSync(folder), false)
  })
}

function isAlive (pid: number) {
  return existsSync(`/proc/${pid}`)
}
