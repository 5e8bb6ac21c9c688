//! The places of a file where one small change makes other, equally well-formed code.
//!
//! A change is text that replaces a range of bytes and asks [`SWITCH`] which of the two to do. It
//! compiles mostly, not always: types aren't known here, and the compiler rejects what doesn't fit.
//! Left alone: what is computed by the compiler, patterns, types, attributes, macros, tests and all
//! else under a `cfg`, `Debug` and `Display`, and what only counts for statistics.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Lit, ReturnType, Signature, Stmt};

/// What a change asks, with [`NUMBER`] in it.
pub const SWITCH: &str = "crate::mutant::is(\0)";
/// Stands for the number of the mutant.
pub const NUMBER: &str = "\0";
/// What names something that only counts.
const COUNTS: &[&str] = &["counters", "counter", "statistics", "Statistics", "Counters"];

pub struct Place {
    pub line: usize,
    pub bytes: Range<usize>,
    pub replacement: String,
    /// For a reader: before and after.
    pub change: String,
}

/// Returns all places of a file, in the order of the text.
pub fn places(text: &str) -> Result<Vec<Place>, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut finder = Finder { text, found: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'a> {
    text: &'a str,
    found: Vec<Place>,
}

impl<'a> Finder<'a> {
    fn text_of(&self, span: Span) -> &'a str {
        &self.text[span.byte_range()]
    }

    fn add(&mut self, span: Span, bytes: Range<usize>, replacement: String, change: String) {
        let before = &self.text[bytes.clone()];
        if COUNTS.iter().any(|word| before.contains(word)) {
            return;
        }
        let change = change.split_whitespace().collect::<Vec<_>>().join(" ");
        self.found.push(Place { line: span.start().line, bytes, replacement, change });
    }

    /// `after` instead of `span`, as an expression.
    fn instead(&mut self, span: Span, after: &str) {
        let before = self.text_of(span).to_owned();
        let replacement = format!("(if {SWITCH} {{ {after} }} else {{ {before} }})");
        self.add(span, span.byte_range(), replacement, format!("{before}  =>  {after}"));
    }

    fn negated(&mut self, condition: &Expr) {
        if !has_let(condition) {
            let before = self.text_of(condition.span());
            let (replacement, change) =
                (format!("({SWITCH} != ({before}))"), format!("{before}  =>  !({before})"));
            self.add(condition.span(), condition.span().byte_range(), replacement, change);
        }
    }

    /// A function that returns at once what means nothing.
    fn returns(&mut self, signature: &Signature, block: &Block) {
        let returned = match &signature.output {
            ReturnType::Default => String::new(),
            ReturnType::Type(_, returned) => {
                self.text_of(returned.span()).split_whitespace().collect()
            }
        };
        let values: &[&str] = match &*returned {
            "" => &[""],
            "bool" => &["true", "false"],
            "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0"],
            _ if returned.starts_with("Option<") => &["None"],
            _ if returned.starts_with("Result<()") => &["Ok(())"],
            _ => &[],
        };
        let open = block.brace_token.span.open();
        let at = open.byte_range().end;
        for value in values.iter().filter(|_| !block.stmts.is_empty()) {
            let change = format!("fn {} returns {value} at once", signature.ident);
            let replacement = format!(" if {SWITCH} {{ return {value}; }}");
            self.add(open, at..at, replacement, change);
        }
    }
}

/// Whether a `cfg` (tests mostly) or `test` stands above it.
fn is_conditional(attributes: &[Attribute]) -> bool {
    let is = |name: &str| attributes.iter().any(|one| one.path().is_ident(name));
    is("cfg") || is("test")
}

/// Whether a chain of conditions binds names: it can't stand in parentheses.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(pair) => has_let(&pair.left) || has_let(&pair.right),
        _ => false,
    }
}

fn other_operator(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Mul(_) | BinOp::Rem(_) => "/",
        BinOp::Div(_) => "*",
        BinOp::Shl(_) => ">>",
        BinOp::Shr(_) => "<<",
        BinOp::BitAnd(_) => "|",
        BinOp::BitOr(_) | BinOp::BitXor(_) => "&",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::MulAssign(_) => "/=",
        BinOp::BitAndAssign(_) => "|=",
        BinOp::BitOrAssign(_) => "&=",
        _ => return None,
    })
}

fn other_method(name: &str) -> Option<&'static str> {
    const PAIRS: &[(&str, &str)] = &[
        ("min", "max"),
        ("is_some", "is_none"),
        ("is_ok", "is_err"),
        ("first", "last"),
        ("any", "all"),
        ("take_while", "skip_while"),
    ];
    PAIRS.iter().find_map(|(one, other)| match name {
        _ if name == *one => Some(*other),
        _ if name == *other => Some(*one),
        _ => None,
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_conditional(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let is_shown = block.trait_.as_ref().is_some_and(|(of, _)| {
            let of = self.text_of(of.span());
            ["Debug", "Display"].iter().any(|name| of.contains(name))
        });
        if !is_shown && !is_conditional(&block.attrs) {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_conditional(&function.attrs) && function.sig.constness.is_none() {
            self.returns(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_conditional(&function.attrs) && function.sig.constness.is_none() {
            self.returns(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement {
            let called = match expression {
                Expr::Try(tried) => &*tried.expr,
                other => other,
            };
            if matches!(called, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_)) {
                let span = statement.span();
                let before = self.text_of(span);
                let replacement = format!("if !{SWITCH} {{ {before} }}");
                let change = format!("{before}  =>  left out");
                self.add(span, span.byte_range(), replacement, change);
            }
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let span = expression.span();
        match expression {
            Expr::If(one) => self.negated(&one.cond),
            Expr::While(one) => self.negated(&one.cond),
            Expr::Binary(pair) if !has_let(expression) => {
                if let Some(operator) = other_operator(&pair.op) {
                    let (left, right) = (pair.left.span(), pair.right.span());
                    let after =
                        format!("{} {operator} {}", self.text_of(left), self.text_of(right));
                    self.instead(span, &after);
                }
            }
            Expr::MethodCall(call) => {
                if let Some(other) = other_method(&call.method.to_string()) {
                    let (all, name) = (span.byte_range(), call.method.span().byte_range());
                    let text = self.text;
                    let (head, tail) = (&text[all.start..name.start], &text[name.end..all.end]);
                    self.instead(span, &format!("{head}{other}{tail}"));
                } else if call.method == "is_empty" {
                    self.negated(expression);
                }
            }
            Expr::Lit(one) => match &one.lit {
                Lit::Bool(value) => self.instead(span, if value.value { "false" } else { "true" }),
                Lit::Int(number) => {
                    if let Ok(value) = number.base10_parse::<u64>() {
                        let changed = [value.checked_add(1), value.checked_sub(1)];
                        for value in changed.into_iter().flatten() {
                            self.instead(span, &format!("{value}{}", number.suffix()));
                        }
                    }
                }
                _ => {}
            },
            _ => {}
        }
        visit::visit_expr(self, expression);
    }
}
