import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** A client's package, of the folder where it is installed beside its server. */
export async function importFrom (folder: string, name: string) {
  return await import(pathToFileURL(createRequire(path.join(folder, 'package.json')).resolve(name)).href)
}

const PATIENCE_MS = 5000

export async function soon<T> (promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([promise, late]) as T
  } finally {
    clearTimeout(timer)
  }
}
