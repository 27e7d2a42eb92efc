import { enableCompileCache } from './compile-cache.js'
import { ownCode } from './own-code.js'

const CLOSED_WITHIN_MS = 100

const { url, name } = ownCode()
enableCompileCache(name)
try {
  const { runProcess } = /** @type {typeof import('./command-line.js')} */ (await import(url))
  await runProcess()
} catch (error) {
  // Where too many files are open, those that are being read are closed first.
  await new Promise((resolve) => setTimeout(resolve, CLOSED_WITHIN_MS))
  const { tellNotLoaded } = await import('./not-loaded.js')
  process.exitCode = tellNotLoaded(error)
}
