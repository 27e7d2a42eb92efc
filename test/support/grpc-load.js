import grpc from '@grpc/grpc-js'
import { setTimeout as wait } from 'node:timers/promises'
import greeter from '../fixtures/greeter.cjs'

const CHANNELS = 8
const PATIENCE_MS = 20_000
const Greeter = /** @type {any} */ (grpc.makeGenericClientConstructor(greeter.SERVICE, 'Greeter'))

/**
 * gRPC clients that call as fast as they are answered, unary and with a stream in turn, until stopped. A call that fails
 * is counted, whatever the library may do about it by itself.
 * @param {string} address such as `127.0.0.1:50051` @param {{ isKept?: boolean, pauseMs?: number }} [options] `isKept: false`: a new channel for every call; `pauseMs`: after each one
 */
export function hammerGrpc (address, { isKept = true, pauseMs = 0 } = {}) {
  const counts = { total: 0, failures: /** @type {string[]} */ ([]) }
  const stopping = new AbortController()
  const clients = Array.from({ length: CHANNELS }, async () => {
    let channel = open(address)
    for (let turn = 0; !stopping.signal.aborted; turn++) {
      const failure = await (turn % 2 === 0 ? callOnce : callForMany)(channel)
      counts.total++
      if (failure) counts.failures.push(failure)
      if (pauseMs > 0) await wait(pauseMs)
      if (isKept) continue
      channel.close()
      channel = open(address)
    }
    channel.close()
  })

  return {
    async stop () {
      stopping.abort()
      await Promise.all(clients)
      return counts
    }
  }
}

/** @param {string} address */
function open (address) {
  // Channels share their connections otherwise.
  return new Greeter(address, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
}

/** @param {any} channel @returns {Promise<string | null>} what went wrong */
function callOnce (channel) {
  return new Promise((resolve) => {
    channel.greet({}, { deadline: Date.now() + PATIENCE_MS }, (/** @type {any} */ error) => resolve(error && `${error.code} ${error.details}`))
  })
}

/** @param {any} channel @returns {Promise<string | null>} */
function callForMany (channel) {
  return new Promise((resolve) => {
    let count = 0
    channel.greetOften({}, { deadline: Date.now() + PATIENCE_MS })
      .on('data', () => { count++ })
      .on('error', (/** @type {any} */ error) => resolve(`${error.code} ${error.details}`))
      .on('end', () => resolve(count === 5 ? null : `${count} of 5 messages`))
  })
}
