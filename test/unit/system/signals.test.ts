import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { listenForSignals } from '../../../server/system/signals.ts'

/** @returns what they make happen */
function send (hasTerminal: boolean, signals: string[]): string[] {
  const done = [] as string[]
  const [source, keeper] = [new EventEmitter(), new EventEmitter()]
  const leave = listenForSignals({ onStop: () => done.push('stop'), onKill: () => done.push('kill'),
    onDeploy: () => done.push('deploy'), onRestart: () => done.push('restart') }, { sources: [source, keeper],
    hasTerminal })
  for (const signal of signals) {
    if (signal.startsWith('keeper ')) keeper.emit(signal.slice('keeper '.length))
    else source.emit(signal)
  }
  leave()
  assert.deepEqual([...source.eventNames(), ...keeper.eventNames()], [])
  return done
}

test('a second signal to stop ends all at once', () => {
  assert.deepEqual(send(false, ['SIGUSR2', 'SIGTERM', 'SIGINT']), ['restart', 'stop', 'kill'])
})

test('one that reaches the master and its keeper is one, and the next one of either a second', () => {
  assert.deepEqual(send(false, ['SIGTERM', 'keeper SIGTERM']), ['stop'])
  assert.deepEqual(send(false, ['keeper SIGTERM', 'SIGTERM', 'keeper SIGINT']), ['stop', 'kill'])
  assert.deepEqual(send(false, ['keeper SIGUSR2']), ['restart'])
})

test('a hang-up deploys where there is no terminal that could hang up', () => {
  assert.deepEqual(send(false, ['SIGHUP', 'SIGHUP', 'SIGTERM', 'SIGHUP']), ['deploy', 'deploy', 'stop', 'deploy'])
})

test('a terminal that is closed stops, however often it says so, and ends nothing at once', () => {
  assert.deepEqual(send(true, ['SIGHUP', 'SIGHUP']), ['stop'])
  assert.deepEqual(send(true, ['SIGTERM', 'SIGHUP']), ['stop'])
  assert.deepEqual(send(true, ['SIGHUP', 'SIGTERM']), ['stop', 'kill'])
})
