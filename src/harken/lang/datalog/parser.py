"""Statements: declarations, types, rules and facts, directives, and the steps of a script."""

from __future__ import annotations

from dataclasses import dataclass

from harken.errors import HarkenError, NameFault, Span, SyntaxFault, nearest
from harken.lang.datalog import syntax
from harken.lang.datalog.formulas import Formulas
from harken.lang.datalog.production_parser import PRODUCTION_DIRECTIVES, Productions
from harken.lang.datalog.rule_text import write
from harken.lang.datalog.token_reader import Reader
from harken.lang.datalog.tokens import DIRECTIVES, Token, text_value, tokens, unsupported

IGNORED_QUALIFIERS = (
    "inline",
    "no_inline",
    "magic",
    "no_magic",
    "brie",
    "btree",
    "btree_delete",
    "override",
    "overridable",
)
OLD_QUALIFIERS = ("input", "output", "printsize")
"""They stand for directives, as in the programs of years ago."""
LATTICE_QUALIFIERS = ("btree_min", "btree_max", "btree_sum")
_NOT_IN_COMPONENTS = (
    *(syntax.Commit, syntax.Change, syntax.Query, syntax.Run, syntax.Activation),
    *(syntax.ProductionRule, syntax.Priority, syntax.ProgramOption),
)
_NOT_HERE = {
    ".functor": "user-defined functors",
    ".lattice": "lattices",
    ".include": "including other files",
    ".once": "including other files",
}


@dataclass(frozen=True, slots=True)
class Program:
    """The statements of a text, in its order."""

    text: str
    statements: tuple[syntax.Statement, ...]

    def text_of(self, statement: syntax.Rule | syntax.TypeDeclaration) -> str:
        """A statement as it is written, or as it would be if it comes from a component."""
        if statement.made:
            return write(statement)
        return self.text[statement.span.start : statement.span.end]


def parse(text: str) -> Program:
    """Read a whole text; SyntaxFault says where it cannot be read, and what was expected.

    >>> [type(each).__name__ for each in parse(".decl p(x: number) p(1). ?- p(x).").statements]
    ['Declaration', 'Rule', 'Query']
    """
    try:
        return Program(text, tuple(_Parser(Reader(tokens(text))).statements()))
    except RecursionError:
        raise SyntaxFault("this text is nested too deeply") from None


def is_closed(text: str) -> bool:
    """Is this nothing but whole statements? What is wrong before its end is for `parse` to say.

    >>> is_closed("p(1)."), is_closed("p(x) :-"), is_closed("p(1)) .")
    (True, False, True)
    """
    try:
        parse(text)
    except SyntaxFault as fault:
        rest = text[fault.span.start :] if fault.span is not None else "?"
        return rest.strip() != "" and not rest.startswith("/*")
    except HarkenError:
        return True
    return True


class _Parser:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._formulas = Formulas(reader)
        self._productions = Productions(reader, self._formulas)

    def statements(self) -> list[syntax.Statement]:
        found: list[syntax.Statement] = []
        while self._reader.next.kind != "end":
            found += self._statement()
        for each in found:
            if isinstance(each, syntax.Override):
                raise SyntaxFault("only a component overrides relations", span=each.span)
        return found

    def _statement(self) -> list[syntax.Statement]:
        reader = self._reader
        token = reader.next
        if token.kind == "directive":
            return self._directive(reader.take())
        if reader.accept("?-"):
            body = self._formulas.disjunction()
            reader.expect(".")
            return [syntax.Query(body, reader.since(token))]
        if reader.is_symbol("+", "-"):
            adds = reader.take().text == "+"
            atom = self._formulas.atom()
            reader.expect(".", "only facts are added and removed")
            return [syntax.Change(adds, atom, reader.since(token))]
        if reader.is_symbol(".") and reader.after().kind == "name":
            raise self._unknown_directive(token)
        if self._productions.is_next():
            return [self._productions.rule()]
        return [self._rule()]

    def _unknown_directive(self, token: Token) -> NameFault:
        written = self._reader.after()
        near = nearest(written.text, DIRECTIVES)
        return NameFault(
            f"there is no directive .{written.text}",
            code="syntax",
            span=token.span | written.span,
            hint=f"did you mean .{near}?" if near else None,
        )

    # --- rules -----------------------------------------------------------------------------

    def _rule(self) -> syntax.Rule:
        reader = self._reader
        start = reader.next
        heads = [self._head()]
        while reader.accept(","):
            heads.append(self._head())
        if reader.is_symbol("<="):
            raise unsupported("subsumption (`<=` between heads)", reader.next.span)
        body = None
        if reader.accept(":-"):
            body = self._formulas.disjunction()
        reader.expect(".", "a rule and a fact end with a dot")
        return syntax.Rule(tuple(heads), body, reader.since(start))

    def _head(self) -> syntax.Atom:
        if self._reader.is_symbol("@"):
            raise unsupported("annotations (`@[...]`)", self._reader.next.span)
        if self._reader.next.kind != "name":
            raise self._reader.unexpected("a declaration, a rule or a fact")
        return self._formulas.atom()

    # --- directives ------------------------------------------------------------------------

    def _directive(self, token: Token) -> list[syntax.Statement]:
        match token.text:
            case ".decl":
                return self._declarations(token)
            case ".type":
                return [self._type(token)]
            case ".symbol_type" | ".number_type":
                name = self._reader.name("the name of a type")
                base, span = token.text[1:].removesuffix("_type"), self._reader.since(token)
                return [syntax.TypeDeclaration(name.text, (base,), True, span)]
            case ".input" | ".output" | ".printsize" | ".limitsize":
                return self._of_relations(token)
            case ".monitor":
                names = self._names("the name of a relation")
                return [syntax.Monitor(each.text, token.span | each.span) for each in names]
            case ".comp":
                return [self._component(token)]
            case ".init":
                return [self._instance(token)]
            case ".override":
                name = self._reader.name("the name of a relation")
                return [syntax.Override(name.text, self._reader.since(token))]
            case ".commit":
                return [syntax.Commit(token.span)]
            case ".pragma":
                while self._reader.next.kind == "text":
                    self._reader.take()
                return [syntax.Ignored("a pragma", self._reader.since(token))]
            case ".plan":
                return [self._plan(token)]
            case ".strict":
                return [syntax.Ignored("strict", token.span)]
            case _ if token.text in PRODUCTION_DIRECTIVES:
                return [self._productions.directive(token)]
        raise unsupported(_NOT_HERE[token.text], token.span)

    def _plan(self, token: Token) -> syntax.Ignored:
        """`.plan 0:(1,2), 1:(2,1)`"""
        reader = self._reader
        while reader.next.kind == "integer":
            reader.take()
            reader.expect(":")
            reader.expect("(")
            while not reader.accept(")"):
                if reader.next.kind == "end":
                    raise reader.unexpected("`)`")
                reader.take()
            if not reader.accept(","):
                break
        return syntax.Ignored("a plan", reader.since(token))

    def _names(self, what: str) -> list[Token]:
        found = [self._reader.qualified(what)]
        while self._reader.accept(","):
            found.append(self._reader.qualified(what))
        return found

    def _declarations(self, token: Token) -> list[syntax.Statement]:
        reader = self._reader
        names = self._names("the name of a relation")
        attributes = self._attributes()
        written = self._qualifiers()
        span = reader.since(token)
        qualifiers = tuple(each for each in written if each[0] not in OLD_QUALIFIERS)
        found: list[syntax.Statement] = []
        for name in names:
            found.append(syntax.Declaration(name.text, attributes, qualifiers, span))
            for word, place in written:
                if word in OLD_QUALIFIERS:
                    found.append(syntax.Directive(word, name.text, {}, place))
        return found

    def _attributes(self) -> tuple[syntax.Attribute, ...]:
        reader = self._reader
        reader.expect("(")
        found: list[syntax.Attribute] = []
        while not reader.is_symbol(")"):
            name = reader.name("the name of an attribute")
            reader.expect(":", "an attribute is written name: type")
            if reader.is_symbol("["):
                raise unsupported("records", reader.next.span)
            type_ = reader.qualified("the name of a type")
            if name.text in [each.name for each in found]:
                raise NameFault(
                    f"two attributes are called {name.text}", code="exists", span=name.span
                )
            found.append(syntax.Attribute(name.text, type_.text, name.span | type_.span))
            if not reader.accept(","):
                break
        reader.expect(")")
        return tuple(found)

    def _qualifiers(self) -> tuple[tuple[str, Span], ...]:
        """The words behind a declaration; one before a parenthesis begins the next statement."""
        reader = self._reader
        found: list[tuple[str, Span]] = []
        while self._is_qualifier():
            token = reader.take()
            if token.text == "choice" and reader.is_symbol("-"):
                raise unsupported("choice-domain", token.span)
            if token.text == "eqrel":
                raise unsupported("eqrel", token.span, "write the rules of an equivalence")
            if token.text in LATTICE_QUALIFIERS:
                raise unsupported(f"{token.text}, a recursive aggregate", token.span)
            if token.text not in (*IGNORED_QUALIFIERS, *OLD_QUALIFIERS):
                near = nearest(token.text, IGNORED_QUALIFIERS)
                raise SyntaxFault(
                    f"a relation cannot be {token.text}",
                    span=token.span,
                    hint=f"did you mean {near}?" if near else None,
                )
            found.append((token.text, token.span))
        return tuple(found)

    def _is_qualifier(self) -> bool:
        reader = self._reader
        return reader.next.kind == "name" and not (reader.is_call() or self._productions.is_next())

    def _type(self, token: Token) -> syntax.TypeDeclaration:
        reader = self._reader
        name = reader.qualified("the name of a type")
        if reader.accept("<:"):
            base = reader.qualified("the name of a type")
            return syntax.TypeDeclaration(name.text, (base.text,), True, reader.since(token))
        if not reader.is_symbol("="):  # an old way to declare a symbol
            return syntax.TypeDeclaration(name.text, ("symbol",), True, reader.since(token))
        reader.take()
        if reader.is_symbol("["):
            raise unsupported("records", reader.next.span)
        bases: list[str] = []
        while True:
            base = reader.qualified("the name of a type")
            if reader.is_symbol("{"):
                raise unsupported("algebraic data types", base.span)
            bases.append(base.text)
            if not reader.accept("|"):
                break
        return syntax.TypeDeclaration(name.text, tuple(bases), False, reader.since(token))

    def _of_relations(self, token: Token) -> list[syntax.Statement]:
        """`.input a, b(headers=true), c(filename="c.csv")`: parameters are for all relations before
        them that have none."""
        reader = self._reader
        found: list[syntax.Statement] = []
        waiting: list[tuple[str, Span]] = []
        while True:
            name = reader.qualified("the name of a relation")
            parameters = self._parameters() if reader.accept("(") else None
            is_first = not found and not waiting
            waiting.append((name.text, reader.since(token) if is_first else name.span))
            more = reader.accept(",")
            if parameters is not None or not more:
                for relation, span in waiting:
                    made = syntax.Directive(token.text[1:], relation, parameters or {}, span)
                    found.append(made)
                waiting = []
            if not more:
                return found

    def _parameters(self) -> dict[str, str]:
        reader = self._reader
        found: dict[str, str] = {}
        while not reader.is_symbol(")"):
            name = reader.name("the name of a parameter")
            reader.expect("=")
            value = reader.next
            if value.kind not in ("name", "text", "integer", "float"):
                raise reader.unexpected("a value")
            reader.take()
            found[name.text] = text_value(value) if value.kind == "text" else value.text
            if not reader.accept(","):
                break
        reader.expect(")")
        return found

    # --- components ------------------------------------------------------------------------

    def _component(self, token: Token) -> syntax.Component:
        """`.comp C<T> : B<T> { ... }`"""
        reader = self._reader
        name = reader.name("the name of a component")
        parameters = self._between_angles("the name of a parameter")
        bases: list[syntax.ComponentType] = []
        if reader.accept(":"):
            bases.append(self._component_type())
            while reader.accept(","):
                bases.append(self._component_type())
        reader.expect("{")
        statements: list[syntax.Statement] = []
        while not reader.accept("}"):
            if reader.next.kind == "end":
                raise reader.unexpected("`}`", f"the component {name.text} is not closed")
            statements += self._statement()
        for each in statements:
            if isinstance(each, _NOT_IN_COMPONENTS):
                raise SyntaxFault(
                    "a component has declarations, rules and facts, and no steps",
                    span=each.span,
                    hint="let it stand behind the component",
                )
        span = reader.since(token)
        return syntax.Component(name.text, parameters, tuple(bases), tuple(statements), span)

    def _instance(self, token: Token) -> syntax.Instance:
        reader = self._reader
        name = reader.name("the name of an instance")
        reader.expect("=", "an instance is made by `.init name = component`")
        component = self._component_type()
        return syntax.Instance(name.text, component, reader.since(token))

    def _component_type(self) -> syntax.ComponentType:
        name = self._reader.name("the name of a component")
        arguments = self._between_angles("the name of a type")
        return syntax.ComponentType(name.text, arguments, self._reader.since(name))

    def _between_angles(self, what: str) -> tuple[str, ...]:
        """`<a, b>`, or nothing at all."""
        if not self._reader.accept("<"):
            return ()
        found = tuple(each.text for each in self._names(what))
        self._reader.expect(">")
        return found
