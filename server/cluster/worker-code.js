/** The file that has the worker's side as one, instead of workers/boot.js and all that it loads: build/bundle.js writes its name here. @type {string | null} */
export const WORKER_CODE = null
