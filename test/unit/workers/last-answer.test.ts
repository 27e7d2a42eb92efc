import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { createLastAnswers } from '../../../workers/last-answer.ts'
import { createTurns } from '../../../workers/turns.ts'
import { listening } from '../../support/listening.ts'
import type { Socket } from 'node:net'

const SPREAD_MS = 100

test('clients are told one after the other to come back, and each that has been told has its last answer', async (t) => {
  const sockets: Socket[] = []
  const server = http.createServer((_request, response) => response.end('ok')).on('connection',
    (socket) => sockets.push(socket))
  const port = await listening(t, server)
  const agents = ['first', 'second', 'third', 'fourth'].map(() => new http.Agent({ keepAlive: true, maxSockets: 1 }))
  t.after(() => agents.forEach((agent) => agent.destroy()))
  const ask = (agent: http.Agent) =>
    new Promise((resolve, reject) => {
      http.get({ port, agent }, (response) => response.resume().on('end', () => resolve(response.headers.connection)))
        .on('error', reject)
    })
  // One after the other, so that the order of the connections is known.
  for (const agent of agents) assert.equal(await ask(agent), 'keep-alive')

  let now = 1000
  const turns = createTurns(() => now)
  const lastAnswers = createLastAnswers({ requests: { inFlight: () => [], isNewest: () => true }, turns })
  const [first, second, third, fourth] = agents
  turns.give(sockets, SPREAD_MS)
  lastAnswers.begin([server])
  assert.equal(await ask(fourth), 'keep-alive')
  assert.equal(await ask(first), 'close')
  now += SPREAD_MS / 4
  assert.equal(await ask(third), 'keep-alive')
  assert.equal(await ask(second), 'close')
  now += SPREAD_MS / 2
  assert.equal(await ask(third), 'close')
  assert.equal(await ask(fourth), 'close')
  assert.equal(sockets.length, agents.length)
})
