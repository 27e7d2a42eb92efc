import { AGENTS } from './catalogue/agents.ts'
import { FILES_AND_PROXIES } from './catalogue/files.ts'
import { FRAMEWORKS } from './catalogue/frameworks.ts'
import { HABITS } from './catalogue/habits.ts'
import { PROTOCOLS } from './catalogue/protocols.ts'
import { STARTS } from './catalogue/starts.ts'
import { TOOLS } from './catalogue/tools.ts'
import type { Place } from './place.ts'
import type { Question } from './protocols.ts'

/** A program, and how it is run and asked. */
export type Program = {
  name: string,
  /** by name, with their versions; the first one is what it is about */
  packages: Record<string, string>,
  /** as in package.json */
  overrides?: Record<string, string>,
  /** a folder of `programs` whose content is put beside its node_modules */
  project?: string,
  /** of `programs`, files and folders, which are put there. Default: the entry, if that is no package's */
  files?: string[],
  /** the package manager that installs it, where that is not npm; then its project has a package.json */
  manager?: [specifier: string, command: string],
  /** as in package.json */
  type?: 'module',
  /** packages with native code, which is compiled after the install, as that runs no scripts */
  compiles?: string[],
  /** commands of its packages, once it is installed */
  build?: string[][],
  /** into its folder: databases and uploads, which its releases have to share */
  writes?: string[],
  /** below its folder */
  entry?: string,
  /** what is typed behind `clusterdeck start` instead of it, but for `--` and what follows */
  start?: string[],
  /** as in package.json */
  scripts?: Record<string, string>,
  /** of `clusterdeck start` */
  flags?: (place: Place) => string[],
  /** its own */
  args?: (place: Place) => string[],
  /** PORT aside, which is always set */
  env?: (place: Place) => Record<string, string>,
  /** ports, paths and, with a / at their end, folders of paths; default: the port that it is told */
  listens?: (place: Place) => string[],
  /** it does not end by SIGTERM under plain node either, so it may be killed */
  outlivesSigterm?: boolean,
  /** it closes connections that stay without a word when it ends, under whatever runs it: what fails on these is counted and no fault */
  keptMayFail?: boolean,
  /** it goes elsewhere while another one runs: rollouts have to fail, and harm nothing */
  cannotBeReplaced?: boolean,
  /** none: it is no server */
  asks?: Question
}

export const PROGRAMS = [...FRAMEWORKS, ...PROTOCOLS, ...HABITS, ...FILES_AND_PROXIES, ...TOOLS, ...AGENTS, ...STARTS]
