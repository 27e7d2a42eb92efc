#!/usr/bin/env node
import { enableCompileCache } from './compile-cache.js'
import { ownCode } from './own-code.js'

const { url, name } = ownCode()
enableCompileCache(name)
const { runProcess } = /** @type {typeof import('./command-line.js')} */ (await import(url))
await runProcess()
