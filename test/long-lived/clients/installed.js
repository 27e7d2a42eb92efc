import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** A client's package, of the folder where it is installed beside its server. @param {string} folder @param {string} name @returns {Promise<any>} */
export async function importFrom (folder, name) {
  return await import(pathToFileURL(createRequire(path.join(folder, 'package.json')).resolve(name)).href)
}

const PATIENCE_MS = 5000

/** @template T @param {Promise<T>} promise @param {string} what @returns {Promise<T>} */
export async function soon (promise, what) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((_resolve, reject) => { timer = setTimeout(() => reject(new Error(`no ${what} within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS) })
  try {
    return /** @type {T} */ (await Promise.race([promise, late]))
  } finally {
    clearTimeout(timer)
  }
}
