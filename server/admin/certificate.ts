import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { DeckError, errorReason } from '../errors.ts'

export type Certificate = ReturnType<typeof createCertificate>

const CHECK_EVERY_MS = 60_000

/**
 * The certificate of the admin port. To renew it, replace the files: the new one is used within a minute. `files`: PEM;
 * the certificate with its chain.
 * @throws {DeckError} invalid-config
 */
export function createCertificate (files: { cert: string, key: string },
  { onRenewed, onError, timers }: { onRenewed: (fingerprint: string) => void, onError: (error: unknown) => void,
    timers: Pick<typeof globalThis, 'setInterval' | 'clearInterval'> })
{
  let { pair, fingerprint } = readPair(files)
  let stamp = stampOf(files)
  let timer: NodeJS.Timeout | undefined

  return {
    get pair () {
      return pair
    },

    /** SHA-256 of the certificate, `AB:CD:…`: the command line on this machine recognises the master by it. */
    get fingerprint () {
      return fingerprint
    },

    renewFor (server: { setSecureContext: (pair: { cert: Buffer, key: Buffer }) => void }) {
      timer = timers.setInterval(() => {
        try {
          const newest = stampOf(files)
          if (newest === stamp) return // The two files do not change at the same time, so a pair that does not fit yet is checked again.
          ;({ pair, fingerprint } = readPair(files))
          stamp = newest
          server.setSecureContext(pair)
          onRenewed(fingerprint)
        } catch (error) {
          onError(error)
        }
      }, CHECK_EVERY_MS)
      timer?.unref?.()
    },

    close () {
      timers.clearInterval(timer)
    }
  }
}

function readPair (
  { cert: certFile, key: keyFile }: { cert: string, key: string }
): { pair: { cert: Buffer, key: Buffer }, fingerprint: string } {
  const pair = { cert: readPem('cert', certFile), key: readPem('key', keyFile) }
  try {
    createSecureContext(pair)
    return { pair, fingerprint: new X509Certificate(pair.cert).fingerprint256 }
  } catch (error) {
    throw new DeckError('invalid-config',
      `admin.tls: expected a certificate and its private key as PEM, received ${certFile} and ${keyFile} (${
        errorReason(error)
      })`, { cause: error })
  }
}

function readPem (name: 'cert' | 'key', file: string) {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new DeckError('invalid-config',
      `admin.tls.${name}: expected a file that can be read, received ${file} (${errorReason(error)})`, { cause: error })
  }
}

function stampOf ({ cert, key }: { cert: string, key: string }) {
  return [cert, key].map((file) => statSync(file)).map(({ mtimeMs, ino, size }) => `${mtimeMs} ${ino} ${size}`).join()
}
