import { AGENTS } from './catalogue/agents.js'
import { FILES_AND_PROXIES } from './catalogue/files.js'
import { FRAMEWORKS } from './catalogue/frameworks.js'
import { HABITS } from './catalogue/habits.js'
import { PROTOCOLS } from './catalogue/protocols.js'
import { STARTS } from './catalogue/starts.js'
import { TOOLS } from './catalogue/tools.js'

/**
 * A program, and how it is run and asked.
 * @typedef {object} Program
 * @property {string} name
 * @property {Record<string, string>} packages by name, with their versions; the first one is what it is about
 * @property {Record<string, string>} [overrides] as in package.json
 * @property {string} [project] a folder of `programs` whose content is put beside its node_modules
 * @property {string[]} [files] of `programs`, files and folders, which are put there. Default: the entry, if that is no package's
 * @property {[specifier: string, command: string]} [manager] the package manager that installs it, where that is not npm; then its project has a package.json
 * @property {'module'} [type] as in package.json
 * @property {string[]} [compiles] packages with native code, which is compiled after the install, as that runs no scripts
 * @property {string[][]} [build] commands of its packages, once it is installed
 * @property {string[]} [writes] into its folder: databases and uploads, which its releases have to share
 * @property {string} [entry] below its folder
 * @property {string[]} [start] what is typed behind `clusterdeck start` instead of it, but for `--` and what follows
 * @property {Record<string, string>} [scripts] as in package.json
 * @property {(place: Place) => string[]} [flags] of `clusterdeck start`
 * @property {(place: Place) => string[]} [args] its own
 * @property {(place: Place) => Record<string, string>} [env] PORT aside, which is always set
 * @property {(place: Place) => string[]} [listens] ports, paths and, with a / at their end, folders of paths; default: the port that it is told
 * @property {boolean} [outlivesSigterm] it does not end by SIGTERM under plain node either, so it may be killed
 * @property {boolean} [keptMayFail] it closes connections that stay without a word when it ends, under whatever runs it: what fails on these is counted and no fault
 * @property {boolean} [cannotBeReplaced] it goes elsewhere while another one runs: rollouts have to fail, and harm nothing
 * @property {import('./protocols.js').Question} [asks] none: it is no server
 */
/** @typedef {import('./place.js').Place} Place */

export const PROGRAMS = [...FRAMEWORKS, ...PROTOCOLS, ...HABITS, ...FILES_AND_PROXIES, ...TOOLS, ...AGENTS, ...STARTS]
