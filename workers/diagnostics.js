import { chmodSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers'

/** @typedef {Extract<import('./protocol.js').ToWorker, { type: 'diagnose' }>} Order */

/**
 * Writes what the master asks for into a file of the master's choice, and says when it is there.
 * @param {import('./channel.js').Channel} channel
 */
export function answerDiagnostics (channel) {
  channel.on('diagnose', async (order) => {
    const { id } = order
    try {
      await WRITERS[order.kind](order)
      channel.send({ type: 'diagnosed', id, error: null })
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      channel.send({ type: 'diagnosed', id, error: text.slice(0, 500) })
    }
  })
}

/**
 * Each writer loads what it needs on demand, as most workers are never asked.
 * @type {Record<Order['kind'], (order: Order) => Promise<void>>}
 */
const WRITERS = {
  async 'cpu-profile' ({ file, durationMs }) {
    const { Session } = await import('node:inspector/promises')
    const session = new Session()
    session.connect()
    try {
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
      // A profile must not keep a process running that would end.
      await new Promise((resolve) => { setTimeout(resolve, durationMs).unref() })
      const { profile } = await session.post('Profiler.stop')
      writeJson(file, profile)
    } finally {
      session.disconnect()
    }
  },

  async 'heap-snapshot' ({ file }) {
    const { writeHeapSnapshot } = await import('node:v8')
    writeHeapSnapshot(file)
    chmodSync(file, 0o600)
  },

  async 'heap-statistics' ({ file }) {
    const v8 = await import('node:v8')
    writeJson(file, {
      at: new Date().toISOString(),
      pid: process.pid,
      memoryUsage: process.memoryUsage(),
      heapStatistics: v8.getHeapStatistics(),
      heapSpaces: v8.getHeapSpaceStatistics(),
      heapCode: v8.getHeapCodeStatistics(),
      resourceUsage: process.resourceUsage()
    })
  },

  async report ({ file }) {
    const { report } = process
    const before = report.excludeNetwork
    // Names are looked up for every open connection, which stops the process; Node before 20.13 cannot leave that out.
    if (before !== undefined) report.excludeNetwork = true
    try {
      /** @type {{ environmentVariables?: unknown, header?: { networkInterfaces?: unknown } }} */
      const content = report.getReport()
      delete content.environmentVariables
      delete content.header?.networkInterfaces
      writeJson(file, content)
    } finally {
      if (before !== undefined) report.excludeNetwork = before
    }
  }
}

/** @param {string} file @param {unknown} content */
function writeJson (file, content) {
  writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
}
