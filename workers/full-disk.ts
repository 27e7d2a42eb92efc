import fs from 'node:fs'

/** Errors of a full disk or an exceeded quota. */
const FULL = new Set(['ENOSPC', 'EDQUOT'])
const OUTPUTS = new Set([1, 2])

/**
 * The output of a worker goes to files, where without a master it went to a terminal or a pipe: on a full disk what
 * does not fit is dropped there. Otherwise the app's next line would end it, by an exception or by a stream's 'error'.
 */
export function outliveFullDisk () {
  const { writeSync } = fs
  // Loggers such as pino write by this call.
  fs.writeSync = function (...args: [number, string | NodeJS.ArrayBufferView, ...unknown[]]) {
    try {
      return Reflect.apply(writeSync, fs, args)
    } catch (error) {
      const [fd, data] = args
      if (!OUTPUTS.has(fd) || !isOfFullDisk(error)) throw error
      return Buffer.byteLength(data)
    }
  }
  for (const name of ['stdout', 'stderr'] as const) whenUsed(name, dropWhatDoesNotFit)
}

/** Node makes these streams when somebody asks for them, and some programs never do. */
function whenUsed (name: 'stdout' | 'stderr', prepare: (stream: NodeJS.WriteStream) => void) {
  const descriptor = Object.getOwnPropertyDescriptor(process, name)
  if (!descriptor?.get) return
  Object.defineProperty(process, name, { ...descriptor, get () {
    Object.defineProperty(process, name, descriptor)
    const stream = process[name]
    prepare(stream)
    return stream
  } })
}

function dropWhatDoesNotFit (stream: NodeJS.WriteStream & { _type?: string }) {
  const { _write } = stream
  if (stream._type !== 'fs' || typeof _write !== 'function') return
  stream._write = function (chunk, encoding, done) {
    _write.call(stream, chunk, encoding, (error) => done(isOfFullDisk(error) ? undefined : error))
  }
}

function isOfFullDisk (error: unknown) {
  return error instanceof Error && 'code' in error && FULL.has(String(error.code))
}
