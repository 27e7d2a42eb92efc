import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { DeckError, errorReason } from '../errors.js'

/** @typedef {ReturnType<typeof createCertificate>} Certificate */

const CHECK_EVERY_MS = 60_000

/**
 * The certificate of the admin port. To renew it, replace the files: the new one is used within a minute.
 * @param {{ cert: string, key: string }} files PEM; the certificate with its chain
 * @param {{
 *   onRenewed: (fingerprint: string) => void,
 *   onError: (error: unknown) => void,
 *   timers: Pick<typeof globalThis, 'setInterval' | 'clearInterval'>
 * }} parts
 * @throws {DeckError} invalid-config
 */
export function createCertificate (files, { onRenewed, onError, timers }) {
  let { pair, fingerprint } = readPair(files)
  let stamp = stampOf(files)
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    get pair () { return pair },

    /** SHA-256 of the certificate, `AB:CD:…`: the command line on this machine recognises the master by it. */
    get fingerprint () { return fingerprint },

    /** @param {{ setSecureContext: (pair: { cert: Buffer, key: Buffer }) => void }} server */
    renewFor (server) {
      timer = timers.setInterval(() => {
        try {
          const newest = stampOf(files)
          if (newest === stamp) return
          // The two files do not change at the same time, so a pair that does not fit yet is checked again.
          ({ pair, fingerprint } = readPair(files))
          stamp = newest
          server.setSecureContext(pair)
          onRenewed(fingerprint)
        } catch (error) {
          onError(error)
        }
      }, CHECK_EVERY_MS)
      timer?.unref?.()
    },

    close () { timers.clearInterval(timer) }
  }
}

/** @param {{ cert: string, key: string }} files @returns {{ pair: { cert: Buffer, key: Buffer }, fingerprint: string }} */
function readPair ({ cert: certFile, key: keyFile }) {
  const pair = { cert: readPem('cert', certFile), key: readPem('key', keyFile) }
  try {
    createSecureContext(pair)
    return { pair, fingerprint: new X509Certificate(pair.cert).fingerprint256 }
  } catch (error) {
    throw new DeckError(
      'invalid-config',
      `admin.tls: expected a certificate and its private key as PEM, received ${certFile} and ${keyFile} (${errorReason(error)})`,
      { cause: error }
    )
  }
}

/** @param {'cert' | 'key'} name @param {string} file */
function readPem (name, file) {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new DeckError('invalid-config', `admin.tls.${name}: expected a file that can be read, received ${file} (${errorReason(error)})`, { cause: error })
  }
}

/** @param {{ cert: string, key: string }} files */
function stampOf ({ cert, key }) {
  return [cert, key].map((file) => statSync(file)).map(({ mtimeMs, ino, size }) => `${mtimeMs} ${ino} ${size}`).join()
}
