import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { listenForSignals } from '../../../server/system/signals.js'

/** @param {boolean} hasTerminal @param {string[]} signals @returns {string[]} what they make happen */
function send (hasTerminal, signals) {
  const done = /** @type {string[]} */ ([])
  const source = new EventEmitter()
  const leave = listenForSignals({
    onStop: () => done.push('stop'), onKill: () => done.push('kill'), onDeploy: () => done.push('deploy'), onRestart: () => done.push('restart')
  }, { source: /** @type {any} */ (source), hasTerminal })
  for (const signal of signals) source.emit(signal)
  leave()
  assert.deepEqual(source.eventNames(), [])
  return done
}

test('a second signal to stop ends all at once', () => {
  assert.deepEqual(send(false, ['SIGUSR2', 'SIGTERM', 'SIGINT']), ['restart', 'stop', 'kill'])
})

test('a hang-up deploys where there is no terminal that could hang up', () => {
  assert.deepEqual(send(false, ['SIGHUP', 'SIGHUP', 'SIGTERM', 'SIGHUP']), ['deploy', 'deploy', 'stop', 'deploy'])
})

test('a terminal that is closed stops, however often it says so, and ends nothing at once', () => {
  assert.deepEqual(send(true, ['SIGHUP', 'SIGHUP']), ['stop'])
  assert.deepEqual(send(true, ['SIGTERM', 'SIGHUP']), ['stop'])
  assert.deepEqual(send(true, ['SIGHUP', 'SIGTERM']), ['stop', 'kill'])
})
