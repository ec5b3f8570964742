// pymdownx.arithmatex marks equations with the class "arithmatex"; MathJax, which is loaded next, draws only those.
window.MathJax = {
  tex: {
    inlineMath: [["\\(", "\\)"]],
    displayMath: [["\\[", "\\]"]],
    processEscapes: true,
    processEnvironments: true,
    // An unknown command is an error, which the tests find, not red text.
    packages: { "[-]": ["noundefined"] },
  },
  options: {
    ignoreHtmlClass: ".*|",
    processHtmlClass: "arithmatex",
    // The menu could fetch parts of MathJax that are not bundled here.
    enableMenu: false,
  },
  svg: { fontCache: "global" },
};
