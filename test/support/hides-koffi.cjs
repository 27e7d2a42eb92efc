// By `--require`: a machine for which the optional package has no binary.
const Module = /** @type {any} */ (require('node:module'))

const load = Module._load
Module._load = function (/** @type {string} */ name, /** @type {any[]} */ ...rest) {
  if (name === 'koffi') throw Object.assign(new Error('Cannot find module \'koffi\''), { code: 'MODULE_NOT_FOUND' })
  return load.call(this, name, ...rest)
}
