import { enableCompileCache } from './compile-cache.js'
import { ownCode } from './own-code.js'

const { createRequire } = process.getBuiltinModule('node:module')

const CLOSED_WITHIN_MS = 100

const own = ownCode()
if (own === null) process.exitCode = 1
else await run(own)

/** @param {{ folder: URL, name: string }} own */
async function run ({ folder, name }) {
  enableCompileCache(name)
  const load = createRequire(folder)
  try {
    const { runProcess } = /** @type {typeof import('./command-line.ts')} */ (load('./command-line.cjs'))
    await runProcess()
  } catch (error) {
    // Where too many files are open, those that are being read are closed first.
    await new Promise((resolve) => setTimeout(resolve, CLOSED_WITHIN_MS))
    const { tellNotLoaded } = /** @type {typeof import('./not-loaded.ts')} */ (load('./not-loaded.cjs'))
    process.exitCode = tellNotLoaded(error)
  }
}
