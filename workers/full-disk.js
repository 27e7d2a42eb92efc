import fs from 'node:fs'

/** Errors of a full disk or an exceeded quota. */
const FULL = new Set(['ENOSPC', 'EDQUOT'])
const OUTPUTS = new Set([1, 2])

/**
 * The output of a worker goes to files, where without a master it went to a terminal or a pipe: on a full disk what does
 * not fit is dropped there. Otherwise the app's next line would end it, by an exception or by a stream's 'error'.
 */
export function outliveFullDisk () {
  const { writeSync } = fs
  // Loggers such as pino write so.
  fs.writeSync = /** @type {any} */ function (/** @type {number} */ fd, /** @type {any} */ data) {
    try {
      return /** @type {any} */ (writeSync).apply(fs, arguments)
    } catch (/** @type {any} */ error) {
      if (!OUTPUTS.has(fd) || !FULL.has(error.code)) throw error
      return Buffer.byteLength(data)
    }
  }
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) whenUsed(name, dropWhatDoesNotFit)
}

/**
 * Node makes these streams when somebody asks for them, and some programs never do.
 * @param {'stdout' | 'stderr'} name @param {(stream: any) => void} prepare
 */
function whenUsed (name, prepare) {
  const descriptor = Object.getOwnPropertyDescriptor(process, name)
  if (!descriptor?.get) return
  Object.defineProperty(process, name, {
    ...descriptor,
    get () {
      Object.defineProperty(process, name, descriptor)
      const stream = process[name]
      prepare(stream)
      return stream
    }
  })
}

/** @param {any} stream one that writes to a file */
function dropWhatDoesNotFit (stream) {
  const { _write } = stream
  if (stream._type !== 'fs' || typeof _write !== 'function') return
  stream._write = function (/** @type {unknown} */ chunk, /** @type {unknown} */ encoding, /** @type {(error?: any) => void} */ done) {
    _write.call(stream, chunk, encoding, (/** @type {any} */ error) => done(FULL.has(error?.code) ? undefined : error))
  }
}
