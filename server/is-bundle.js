/** Whether this code runs from few files, into which build/bundle.js has put all modules: it says true there. */
export const IS_BUNDLE = false
