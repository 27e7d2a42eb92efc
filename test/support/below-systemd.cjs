// By `--require`: a process in the control group of a service of systemd.
const fs = /** @type {any} */ (require('node:fs'))

const { readFileSync } = fs
fs.readFileSync = function (/** @type {unknown} */ file, /** @type {unknown[]} */ ...rest) {
  if (file === `/proc/${process.pid}/cgroup`) return '0::/system.slice/shop.service\n'
  return readFileSync.call(this, file, ...rest)
}
require('node:module').syncBuiltinESMExports()
