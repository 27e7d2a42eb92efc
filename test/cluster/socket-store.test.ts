import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startReady } from '../support/deck.ts'
import { openFreshConnections } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { openSocketStore, withoutNativeCalls } from '../support/service-manager.ts'

const APP = 'listens-where-told.js'

describe('sockets in the store of the service manager', { skip: withoutNativeCalls, concurrency: 2 }, () => {
  test('keeper, master and workers are killed together: whoever connects meanwhile waits, and is answered', async (t) => {
    const store = openSocketStore(t)
    const port = await freePort()
    const env = { ADDRESSES: JSON.stringify([{ host: '127.0.0.1', port }]), NOTIFY_SOCKET: store.name }
    const first = await startReady(t, APP, { env })
    await store.untilKept(1)
    const fresh = openFreshConnections(t, `http://127.0.0.1:${port}`, { perSecond: 50 })
    await fresh.untilAnswered(20)
    const { workers } = await first.status()
    await fresh.whenIdle(() => {
      for (const pid of [Number(first.child.pid), first.masterPid, ...workers.map((worker) => Number(worker.pid))])
        process.kill(pid, 'SIGKILL')
    })
    await first.exited
    await new Promise((resolve) => setTimeout(resolve, 300))
    const second = await startReady(t, APP, { env, dataDir: first.folder, launch: store.launch() })
    const { total, slowestMs } = await fresh.checkNoneLost()
    t.diagnostic(`${total} connections, the slowest took ${slowestMs} ms`)
    console.log(second.output, store.told, store.kept)
  })
})
